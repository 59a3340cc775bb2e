import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { mintEventId, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { deadKey, failedKey, inboxKey, operationKey, rejectedKey } from '../../lambdas/runtime/store/keys.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import { handmadeMailroom } from '../local/support/handmade-mailroom.ts';
import { mailroomAt } from '../local/support/mailroom.ts';
import { ACTS, FORGED, hostile } from './hostile-text.ts';

vi.setConfig({ testTimeout: 300_000 });

/** No other test uses this region. */
const REGION = 'ap-south-1';

let small: Awaited<ReturnType<typeof handmadeMailroom>>;
const now = Date.now();

const run = (...argv: string[]) =>
  mailroomAt(inject('endpoint'), ...argv, '--region', REGION, '--stack', small.stack);

/** Texts under each of these names. */
function texts(row: string, ...names: readonly string[]): Item {
  return Object.fromEntries(names.map((name) => [name, hostile(`${row}.${name}`)]));
}

const put = (Item: Item) => small.table.write({ Put: { Item: { schema: 1, ...Item } } });

/** An outbox row, every text of which attacks. @returns its event's id */
async function outboxRow(kind: string, row: Item): Promise<string> {
  const eventId = mintEventId(now - 20 * MINUTE_MS, small.config.shards);
  const envelope = {
    eventId,
    ...texts(`${kind}.envelope`, 'type', 'aggregateType', 'aggregateId', 'correlationId', 'causationId'),
    data: { [hostile(`${kind}.key`)]: hostile(`${kind}.data`) },
  };
  await put({
    ...outboxKeyOf(eventId),
    leaseUntil: now - MINUTE_MS,
    attempts: 2,
    type: 'Sold',
    source: 'orders',
    envelope: JSON.stringify(envelope),
    ...row,
  });
  return eventId;
}

const ERROR = ['lastError', 'fingerprint'];
const OPERATORS = ['requeuedBy', 'requeuedReason', 'discardedBy', 'discardedReason', 'publishedBy'];
const INBOX = [
  ...ERROR,
  ...['type', 'reason', 'result', 'resolvedBy', 'resolvedReason', 'discardedBy', 'discardedReason'],
  ...['allowedBy', 'allowedReason', 'commitId', 'fence'],
];
const at = now - 5 * MINUTE_MS;

/** Every status of an outbox row, then every status of an inbox row. @returns the ids of the events */
async function hostileEvents(): Promise<string[]> {
  const times = { requeuedAt: at, discardedAt: at, publishedAt: at };
  const all = texts('outbox', ...ERROR, ...OPERATORS);
  const ids = [
    await outboxRow('pending', {
      ...all,
      status: 'PENDING',
      source: hostile('source'),
      type: hostile('type'),
    }),
    await outboxRow('dead', { ...all, ...times, status: 'DEAD', deadAt: at }),
    await outboxRow('discarded', { ...all, ...times, status: 'DISCARDED' }),
    await outboxRow('strange', { ...all, status: hostile('outbox.status') }),
  ];
  for (const status of [
    'PROCESSING',
    'PROCESSED',
    'FAILED',
    'REJECTED',
    'DISCARDED',
    hostile('inbox.status'),
  ]) {
    const eventId = await outboxRow(status, { ...all, ...times, status: 'PUBLISHED' });
    const effect = {
      ...texts('effect', 'fence', 'result'),
      run: 1,
      endsBy: at,
      startedAt: at,
      completedAt: at,
    };
    const inbox = { retryAt: at, rejectedAt: at, processedAt: at, discardedAt: at, claimedAt: at };
    const effects = { [hostile('effect.name')]: { ...effect, status: 'COMPLETED' } };
    await put({
      ...inboxKey('ledger', eventId),
      ...texts('inbox', ...INBOX),
      ...inbox,
      attempts: 2,
      status,
      effects,
    });
    await put({ ...failedKey('ledger', eventId), failedAt: at, expiresAt: 9_999_999_999 });
    ids.push(eventId);
  }
  return ids;
}

/** Pointers, hints, operations and dead letters, named and filled with attacks. */
async function hostilePointers(eventIds: readonly string[]): Promise<void> {
  const error = texts('pointer', ...ERROR);
  for (const eventId of [...eventIds, hostile('pointer.SK')]) {
    await put({ ...deadKey(0, eventId), ...error, type: hostile('dead.type'), deadAt: at });
    await put({
      ...rejectedKey('ledger', eventId),
      ...error,
      reason: hostile('rejected.reason'),
      rejectedAt: at,
    });
  }
  await put({ ...deadKey(1, hostile('pointer.strange')), deadAt: 'no time' });
  await put({ ...failedKey('ledger', hostile('failed.SK')), failedAt: at, expiresAt: 9_999_999_999 });
  await put({ ...inboxKey('ledger', hostile('failed.SK')), ...texts('inbox', ...INBOX), status: 'FAILED' });
  const operation = texts('operation', 'by', 'command', 'subject', 'reason');
  await put({ ...operationKey(at, hostile('operation.SK')), ...operation, at, expiresAt: 9_999_999_999 });
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const sqs = new SQSClient({ endpoint: inject('endpoint'), region: REGION, credentials });
  const { deadLetterQueue, undeliveredQueue } = small.consumers[0]?.entry ?? {};
  for (const QueueUrl of [deadLetterQueue, undeliveredQueue]) {
    const MessageBody = JSON.stringify({ 'detail-type': hostile('letter.type'), detail: {} });
    // SQS refuses control characters in attributes, but not what turns a text around.
    const attribute = (name: string) => ({ DataType: 'String', StringValue: `<${name}>\u202e\n${FORGED}` });
    const MessageAttributes = { ERROR_CODE: attribute('code'), ERROR_MESSAGE: attribute('message') };
    await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody, MessageAttributes }));
  }
}

let eventIds: readonly string[];

beforeAll(async () => {
  small = await handmadeMailroom(inject('endpoint'), REGION, ['ledger'], ['Sold']);
  eventIds = await hostileEvents();
  await hostilePointers(eventIds);
});

afterAll(() => small.remove());

/** Nothing that a terminal acts on was printed, and no line is one that a row began. */
function expectHarmless({ out, err }: { readonly out: string; readonly err: string }): void {
  for (const text of [out, err]) {
    expect(text.match(ACTS)).toBeNull();
    for (const line of text.split('\n')) expect(line.trimStart().startsWith(FORGED)).toBe(false);
  }
}

describe('rows and dead letters whose every text attacks the terminal are harmless in', () => {
  test.each([
    [['status'], undefined],
    [['operations'], '<operation.by>'],
    [['operations'], '<operation.command>'],
    [['messages', 'list'], '<inbox.lastError>'],
    [['messages', 'list'], '<pointer.SK>'],
    [['messages', 'list', '--rejected'], '<rejected.reason>'],
    [['messages', 'list', '--by', 'cause'], '<inbox.fingerprint>'],
    [['dlq', 'list', 'dead'], '<pointer.strange>'],
    [['dlq', 'list', 'dead', '--by', 'cause'], '<pointer.fingerprint>'],
    [['dlq', 'list'], '<letter.type>'],
    [['dlq', 'list'], '<pointer.fingerprint>'],
    [['dlq', 'redrive', 'dead'], '<pointer.SK>'],
    [['dlq', 'discard', 'dead', '--all', '--reason', hostile('reason')], '<pointer.SK>'],
    [['dlq', 'discard', 'consumer:ledger', '--all', '--reason', "it's"], "'it'\\''s'"],
    [['audit'], 'cannot be read'],
  ] as const)('%j', async (argv, found) => {
    const people = await run(...argv);
    expectHarmless(people);
    expect(people.code, people.err).toBeLessThan(2);
    if (found !== undefined) expect(people.out).toContain(found);
    const machine = await run(...argv, '--json');
    expectHarmless(machine);
    expect(machine.json()).toBeTypeOf('object');
  });

  test('why', async () => {
    const shown: string[] = [];
    for (const eventId of eventIds) {
      const people = await run('why', eventId, '--payload');
      expectHarmless(people);
      expect(people.code, people.err).toBeLessThan(2);
      shown.push(people.out);
      const machine = await run('why', eventId, '--payload', '--json');
      expectHarmless(machine);
      expect(machine.json().events).toHaveLength(1);
    }
    const text = shown.join('\n');
    for (const name of [
      ...['<type>', '<source>', '<outbox.lastError>', '<outbox.discardedBy>', '<outbox.requeuedReason>'],
      ...['<inbox.lastError>', '<inbox.reason>', '<inbox.resolvedBy>', '<inbox.discardedReason>'],
      ...['<effect.name>', '<dead.envelope.aggregateId>', '<dead.envelope.causationId>'],
      ...['<dead.key>', '<dead.data>', '<inbox.status>', '<outbox.status>', '<outbox.publishedBy>'],
    ])
      expect(text, name).toContain(name);
  });

  test('an error that names the missing item', async () => {
    const run1 = await run('why', hostile('id'), '--since', '1m');
    expectHarmless(run1);
    expect(run1.err).toContain('<id>\\u001b');
  });
});
