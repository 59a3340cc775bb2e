import { ConditionalCheckFailedException, TransactionCanceledException } from '@aws-sdk/client-dynamodb';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { errorHelp } from '../../../../lambdas/runtime/base/documentation.ts';
import {
  ConditionFailed,
  FenceLost,
  PoisonMessage,
  TransactionCancelled,
} from '../../../../lambdas/runtime/base/errors.ts';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { createLogger } from '../../../../lambdas/runtime/observe/logger.ts';
import { redactedError } from '../../../../lambdas/runtime/observe/redaction.ts';
import { powertoolsTelemetry } from '../../../../lambdas/runtime/observe/telemetry.ts';
import { createConsumer } from '../../../../lambdas/runtime/sources/sqs/consumer.ts';
import { mintEventId } from '../../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../../lambdas/runtime/store/keys.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { consumerConfig, rig, runThrough, ThingHappened } from '../../../support/runtime-rig.ts';

/** What must never be in a log: a piece of a payload. */
const SECRET = 'card-4711';

afterEach(() => {
  vi.restoreAllMocks();
});

/** Everything that is written to the process's outputs while `run` runs. */
async function written(run: () => unknown): Promise<string> {
  let text = '';
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, 'write').mockImplementation((chunk) => {
      text += String(chunk);
      return true;
    });
  }
  await run();
  vi.restoreAllMocks();
  return text;
}

describe('a log line', () => {
  const metadata = { $metadata: {}, message: 'refused' };
  const withItem = { status: { S: SECRET } };
  const errors: [string, unknown, string][] = [
    ['a refused write of ours', new ConditionFailed({ card: SECRET }), 'CONDITION_FAILED'],
    [
      'a cancelled transaction of ours',
      new TransactionCancelled([{ code: 'ConditionalCheckFailed', item: { card: SECRET } }]),
      'TRANSACTION_CANCELLED',
    ],
    [
      "a refused write of the SDK's",
      new ConditionalCheckFailedException({ ...metadata, Item: withItem }),
      'ConditionalCheckFailedException',
    ],
    [
      'a cause with a row',
      new Error('It failed', {
        cause: new TransactionCanceledException({ ...metadata, CancellationReasons: [{ Item: withItem }] }),
      }),
      'TransactionCanceledException',
    ],
    ["an HTTP client's request", Object.assign(new Error('502'), { config: { data: SECRET } }), '502'],
    [
      'an error that says of itself what it likes',
      Object.assign(new Error('oh'), { toJSON: () => ({ message: 'oh', body: SECRET }) }),
      'oh',
    ],
    ['what was thrown and is not an error', { body: SECRET, message: 'thrown' }, 'thrown'],
  ];

  test.each(errors)('shows what went wrong, and no payload, of %s', async (_what, error, shown) => {
    const log = createLogger('things');
    const text = await written(() => log.error('It went wrong', { eventId: 'e-1', error: error as Error }));
    expect(JSON.parse(text)).toMatchObject({ level: 'ERROR', service: 'things', eventId: 'e-1' });
    expect(text).toContain(shown);
    expect(text).not.toContain(SECRET);
  });

  test('shows the stack and the causes of an error', async () => {
    const error = new Error('outer', { cause: new PoisonMessage('inner') });
    const text = await written(() => createLogger('things').error('It went wrong', { error }));
    expect(JSON.parse(text).error).toMatchObject({
      name: 'Error',
      message: 'outer',
      stack: expect.stringContaining('logger.test.ts'),
      cause: { name: 'PoisonMessage', code: 'POISON_MESSAGE', message: 'inner' },
    });
  });

  test('shows the link of a Mailroom error, also of a redacted one, and no other help', async () => {
    const lost = new FenceLost('the lease has passed');
    const errors = [
      lost,
      redactedError(lost, (text) => text),
      Object.assign(new Error('oh'), { help: SECRET }),
    ];
    const shown: unknown[] = [];
    for (const error of errors) {
      const text = await written(() => createLogger('things').error('It went wrong', { error }));
      shown.push(JSON.parse(text).error.help);
    }
    expect(shown).toEqual([errorHelp('FENCE_LOST'), errorHelp('FENCE_LOST'), undefined]);
  });
});

describe("a consumer's log", () => {
  test.each([
    ['a message that is poison', { n: SECRET }, async () => {}, 'REJECTED'],
    [
      'a message whose handler fails',
      { n: 1, card: SECRET },
      async (event: unknown) => {
        throw Object.assign(new Error('The bank is closed'), { event, request: { body: SECRET } });
      },
      'FAILED',
    ],
  ] as const)(
    'says which message it was, and not what was in it: %s',
    async (_what, data, handle, status) => {
      const parts = rig();
      const { table, queue, clock, memory } = parts;
      const telemetry = powertoolsTelemetry({ service: 'things', tableName: 'Mailroom', consumer: 'worker' });
      const consume = createConsumer({
        config: consumerConfig,
        table,
        queue,
        handlers: [leased(ThingHappened, handle)],
        clock,
        telemetry,
      });
      const eventId = mintEventId(clock.now(), 2);
      const detail = {
        eventId,
        type: 'ThingHappened',
        version: 2,
        aggregateType: 'Thing',
        aggregateId: '1',
        occurredAt: clock.now(),
        correlationId: 'chain',
        data,
      };
      queue.send({ id: 'e', 'detail-type': 'ThingHappened', source: 'things', detail });
      const text = await written(() =>
        runThrough(clock, queue.deliver(consume, 10, lambdaContext({ clock }))),
      );
      expect(memory.item(inboxKey(consumerConfig.consumer, eventId))).toMatchObject({ status });
      expect(text).toContain(eventId);
      expect(text).not.toContain(SECRET);
    },
  );

  test('does not quote a body that is not JSON', async () => {
    const { table, queue, clock } = rig();
    const telemetry = powertoolsTelemetry({ service: 'things', tableName: 'Mailroom', consumer: 'worker' });
    const consume = createConsumer({ config: consumerConfig, table, queue, handlers: [], clock, telemetry });
    queue.send(SECRET);
    const text = await written(() => runThrough(clock, queue.deliver(consume, 10, lambdaContext({ clock }))));
    expect(text).toContain('UNREADABLE_MESSAGE');
    expect(text).not.toContain(SECRET);
  });
});
