import { describe, expect, test, vi } from 'vitest';
import { PoisonMessage, RetryLater } from '../../../../lambdas/runtime/base/errors.ts';
import { receivedOf } from '../../../../lambdas/runtime/consume/consumer-context.ts';
import { delaysOf } from '../../../../lambdas/runtime/consume/delays.ts';
import type { Delivery } from '../../../../lambdas/runtime/consume/delivery.ts';
import { dynamoInbox } from '../../../../lambdas/runtime/consume/dynamo-inbox.ts';
import {
  failUnclaimed,
  type MessageOutcome,
  putBack,
  refused,
  report,
  reportOutage,
  tooLate,
  waitToRunAlone,
} from '../../../../lambdas/runtime/consume/message-outcome.ts';
import { attemptsSpent } from '../../../../lambdas/runtime/consume/run-ending.ts';
import type { InboxRefusal } from '../../../../lambdas/runtime/inbox/inbox.ts';
import { OUTCOME } from '../../../../lambdas/runtime/observe/message-spans.ts';
import type { MetricName } from '../../../../lambdas/runtime/observe/telemetry.ts';
import { createTracer, NO_SPAN } from '../../../../lambdas/runtime/observe/tracer.ts';
import { createInbox } from '../../../../lambdas/runtime/store/dynamo/inbox-context.ts';
import { mintEventId } from '../../../../lambdas/runtime/store/event-id.ts';
import { externalEventId } from '../../../../lambdas/runtime/store/external-id.ts';
import { failedKey, inboxKey } from '../../../../lambdas/runtime/store/keys.ts';
import { consumerConfig, rig } from '../../../support/runtime-rig.ts';
import { CONSUMER } from './consumer-rig.ts';

const NOW = rig().clock.now();
const EVENT_ID = mintEventId(NOW - 5_000, 2);
const broken = new Error('bank answered 503');
const failed = { is: 'failed', error: broken, afterMs: 7_000 } as const;

/** A received message, which was sent 3 s ago. @param draw - of the random source, 0 to 255: the share of the jitter */
function receive(receives = 1, draw = 0, eventId = EVENT_ID) {
  const parts = rig();
  const random = (length: number) => new Uint8Array(length).fill(draw);
  const inbox = dynamoInbox(createInbox({ ...parts, ...consumerConfig, random }), parts.outbox);
  const delivery: Delivery = {
    message: { eventId, messageId: 'message-1', sentAt: NOW - 3_000 },
    body: 'unused',
    receives,
    beganAt: NOW,
    endsBy: NOW + 30_000,
    content: { problem: 'unused' },
  };
  const span = { ...NO_SPAN, set: vi.fn(), fail: vi.fn() };
  const delays = delaysOf(consumerConfig, parts.clock, random);
  const ctx = { ...parts, config: consumerConfig, random, delays, inbox, tracer: createTracer() };
  return { ...parts, span, received: receivedOf(ctx, delivery, span) };
}

type Received = ReturnType<typeof receive>['received'];

/** The delay in seconds until a message becomes visible again. */
function seconds(outcome: MessageOutcome): number {
  if (outcome.kind !== 'again') throw new Error('The message is done');
  return outcome.afterMs / 1_000;
}

const code = (outcome: MessageOutcome) => (outcome as { error?: { code?: string } }).error?.code;

test.each<[string, (received: Received) => MessageOutcome, MetricName, string, number]>([
  [
    'rejected',
    (received) => report(received, { is: 'rejected', error: broken }),
    'MessagesRejected',
    'rejected',
    0,
  ],
  ['failed', (received) => report(received, failed), 'MessagesFailed', 'failed', 7],
  ['in an outage', (received) => reportOutage(received, broken), 'TableFailures', 'outage', 60],
])(
  'a message that is %s is counted and logged, and fails its span',
  (_what, reported, metric, outcome, after) => {
    const { received, telemetry, span } = receive();
    expect(seconds(reported(received))).toBe(after);
    expect(telemetry.counted(metric)).toBe(1);
    expect(telemetry.lines()).toMatchObject([{ level: 'error', extra: { error: broken } }]);
    expect(span.set).toHaveBeenCalledWith(OUTCOME, outcome);
    expect(span.fail).toHaveBeenCalledExactlyOnceWith(broken);
  },
);

test('RetryLater is logged, is not counted as a failure, and does not fail the span of its message', async () => {
  const { received, telemetry, span } = receive();
  const outcome = await failUnclaimed(received, new RetryLater(7_000));
  expect(seconds(outcome)).toBe(7);
  expect(telemetry.counted('MessagesFailed')).toBe(0);
  expect(telemetry.lines()).toMatchObject([{ level: 'error' }]);
  expect(span.set).toHaveBeenCalledWith(OUTCOME, 'retry-later');
  expect(span.fail).not.toHaveBeenCalled();
});

test.each([
  ['a Mailroom event counts from its creation', EVENT_ID, [5_000]],
  [
    'an external event counts from its arrival in the queue',
    externalEventId({ source: 'stripe', type: 'charge', external: { id: ['id'] } }, ['evt_1']),
    [3_000],
  ],
  ['a message without an event is not measured', 'unreadable-message-1', []],
])('the latency of %s', (_what, eventId, durations) => {
  const { received, telemetry, span } = receive(1, 0, eventId);
  expect(report(received, { is: 'processed' })).toEqual({ kind: 'done' });
  expect(telemetry.counted('MessagesProcessed')).toBe(1);
  expect(telemetry.durations('ProcessLatency')).toEqual(durations);
  expect(span.set).toHaveBeenCalledWith(OUTCOME, 'processed');
});

describe('the delay', () => {
  const half = 128;
  const out = (received: Received) => reportOutage(received, broken);
  const fails = (received: Received) => failUnclaimed(received, broken);
  const asks = (received: Received) => failUnclaimed(received, new RetryLater(1_500));

  test.each<
    [string, number, number, number, (received: Received) => MessageOutcome | Promise<MessageOutcome>]
  >([
    ['in an outage', 1, 0, 60, out],
    ['in an outage', 3, 0, 240, out],
    ['in an outage', 3, half, 216, out],
    ['without time to start', 1, 0, 60, tooLate],
    ['without time to start', 3, 0, 240, tooLate],
    ['without time to start', 3, half, 216, tooLate],
    ['of a suspect', 4, 0, 1, waitToRunAlone],
    ['of a suspect', 4, half, 31, waitToRunAlone],
    ['of a suspect', 8, half, 61, waitToRunAlone],
    ['of a message that makes room', 8, half, 0, putBack],
    ['after a failure without a claim', 1, 0, 2, fails],
    ['after a failure without a claim', 3, 0, 32, fails],
    ['after a failure without a claim', 3, half, 24, fails],
    ['that a handler chooses', 3, half, 2, asks],
  ])('%s at receive %d, with the draw %d, is %d s', async (_what, receives, draw, expected, decide) => {
    expect(seconds(await decide(receive(receives, draw).received))).toBe(expected);
  });

  test.each([
    [0, 1],
    [1, 2],
    [9_500, 11],
    [-20_000, 1],
  ])('until a time in %d ms ends a second after that time: %d s', (inMs, expected) => {
    expect(receive().received.delays.untilMs(NOW + inMs) / 1_000).toBe(expected);
  });
});

describe('a message that may not be claimed', () => {
  const leased: InboxRefusal = { status: 'leased', until: NOW + 9_500, endsBy: NOW + 60_000 };

  test.each<[string, InboxRefusal, number, number, string, string | undefined]>([
    ['was rejected', { status: 'rejected', reason: 'POISON_MESSAGE' }, 1, 0, 'POISON_MESSAGE', undefined],
    ['must run alone', { status: 'suspect' }, 1, 1, 'PUT_BACK', undefined],
    [
      'has an unknown status',
      { status: 'unreadable', problem: 'its "schema" is 2, and this version reads up to 1' },
      1,
      60,
      'UNREADABLE_ROW',
      'TableFailures',
    ],
    ['is held by another worker', leased, 1, 11, 'LEASED', 'MessagesLeased'],
    ['is still held by another worker', leased, 2, 61, 'LEASED', 'MessagesLeased'],
  ])(
    'a message that may not be claimed because it %s becomes visible again: %j',
    async (_why, refusal, receives, after, expected, metric) => {
      const { received, telemetry } = receive(receives);
      const outcome = await refused(received, refusal);
      expect(seconds(outcome)).toBe(after);
      expect(code(outcome)).toBe(expected);
      for (const one of ['TableFailures', 'MessagesLeased', 'MessagesDuplicate'] as const)
        expect(telemetry.counted(one)).toBe(one === metric ? 1 : 0);
    },
  );

  test('because it was processed is done and counted as a duplicate', async () => {
    const { received, telemetry, span } = receive();
    await expect(refused(received, { status: 'processed', result: undefined })).resolves.toEqual({
      kind: 'done',
      duplicate: true,
    });
    expect(telemetry.counted('MessagesDuplicate')).toBe(1);
    expect(span.set).toHaveBeenCalledWith(OUTCOME, 'duplicate');
  });
});

describe('poison without a claim', () => {
  const poison = new PoisonMessage('of no use');

  /** Fails a message that has a hint of an earlier failure. */
  async function failed(receives: number, row?: object) {
    const parts = receive(receives);
    const { memory, received } = parts;
    await memory.write({ Put: { Item: { ...failedKey(CONSUMER, EVENT_ID) } } });
    if (row !== undefined) await memory.write({ Put: { Item: { ...inboxKey(CONSUMER, EVENT_ID), ...row } } });
    const outcome = await failUnclaimed(received, poison);
    return { ...parts, outcome, hint: memory.item(failedKey(CONSUMER, EVENT_ID)) };
  }

  test('is rejected and becomes visible again at once, with one write at its first receive', async () => {
    const { outcome, telemetry, hint } = await failed(1);
    expect(outcome).toEqual({ kind: 'again', afterMs: 0, error: poison, rejected: true });
    expect(telemetry.counted('MessagesRejected')).toBe(1);
    expect(hint).toBeDefined();
  });

  test('is rejected together with the hint of an earlier failure', async () => {
    const { outcome, hint } = await failed(2);
    expect(outcome).toEqual({ kind: 'again', afterMs: 0, error: poison, rejected: true });
    expect(hint).toBeUndefined();
  });

  test('an unreadable message that was processed meanwhile is a duplicate', async () => {
    const { outcome, telemetry } = await failed(2, { schema: 1, status: 'PROCESSED', fence: 'theirs' });
    expect(outcome).toEqual({ kind: 'done', duplicate: true });
    expect(telemetry.counted('MessagesRejected')).toBe(0);
    expect(telemetry.counted('MessagesDuplicate')).toBe(1);
  });
});

test.each([
  [1, new Error('never'), 'Rejected after 1 attempt. Error: never'],
  [2, 'a text', 'Rejected after 2 attempts. a text'],
  [2, new Error('x'.repeat(5_000)), `Rejected after 2 attempts. Error: ${'x'.repeat(5_000)}`],
  [2, 'x'.repeat(5_000), `Rejected after 2 attempts. ${'x'.repeat(5_000)}`],
])('the error of a message after %d attempts contains its whole last error', (attempts, last, message) => {
  expect(attemptsSpent(attempts, last)).toMatchObject({ code: 'ATTEMPTS_EXHAUSTED', message, cause: last });
});
