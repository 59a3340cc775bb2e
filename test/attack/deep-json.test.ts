import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod/mini';
import { receiveDeadLetters } from '../../cli/reports/dead-letters/dead-letters.ts';
import { searchEvents } from '../../cli/reports/events/search-events.ts';
import { readStatus } from '../../cli/reports/status/read-status.ts';
import { eventReports, payloadsOf, traceText } from '../../cli/reports/why/trace-text.ts';
import { shown } from '../../cli/terminal/escaped.ts';
import { isDeeperThan, JSON_DEPTH_MAX, PAYLOAD_DEPTH_MAX } from '../../lambdas/runtime/base/json.ts';
import { HOUR_MS } from '../../lambdas/runtime/base/units.ts';
import { leased } from '../../lambdas/runtime/consume/handler.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import { createLogger } from '../../lambdas/runtime/observe/logger.ts';
import { createAudit } from '../../lambdas/runtime/operations/audit/audit.ts';
import { rejectedBy } from '../../lambdas/runtime/operations/dead-letters.ts';
import { createSweepPass } from '../../lambdas/runtime/relay/relay-sweep.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import { outboxKeyOf, unreadableId } from '../../lambdas/runtime/store/event-id.ts';
import { itemBytes } from '../../lambdas/runtime/store/item-size.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../support/captured-io.ts';
import { consumerConfig, relayConfig, rig, runThrough, ThingHappened } from '../support/runtime-rig.ts';
import { withStored } from '../support/with-stored.ts';
import { directory, mailroomInMemory, worker } from '../unit/cli/support/mailroom-in-memory.ts';
import { wired } from '../unit/cli/support/resources-in-memory.ts';
import { commit, drained, fine, type Mailroom, published, why } from '../unit/cli/support/why-rig.ts';

/** Far more levels than a stack has room for. */
const DEEP = 50_000;

/** JSON of a number of levels: lists and objects in turn, written without recursion. */
function nested(levels: number): string {
  const half = levels / 2;
  return `${'[{"a":'.repeat(half)}1${'}]'.repeat(half)}`;
}

const Anything = defineEvent({
  source: 'things',
  type: 'Anything',
  version: 1,
  aggregateType: 'Thing',
  schema: z.any(),
});

/** Changes the envelope of an event's row. */
async function change(mailroom: Mailroom, eventId: string, row: (envelope: object) => object): Promise<void> {
  const item = mailroom.memory.item(outboxKeyOf(eventId)) ?? {};
  const envelope = JSON.parse(String(item.envelope)) as object;
  await mailroom.memory.write({ Put: { Item: { ...item, ...row(envelope) } as never } });
}

/** An envelope with a deep payload, as JSON. */
const deepEnvelope = (envelope: object, levels = DEEP) =>
  JSON.stringify({ ...envelope, data: 'DEEP' }).replace('"DEEP"', nested(levels));

/** Two published events: the row of the first one is deep. */
async function withDeepRow() {
  const mailroom = mailroomInMemory([fine]);
  const deep = await commit(mailroom);
  const other = await drained(mailroom);
  await change(mailroom, deep, (envelope) => ({ envelope: deepEnvelope(envelope) }));
  return { mailroom, deep, other };
}

describe('an outbox row whose JSON is 50,000 levels deep', () => {
  test('the audit counts the row as unreadable and continues with the others', async () => {
    const { mailroom, deep } = await withDeepRow();
    const { memory, queues, clock } = mailroom;
    const rules = { describe: () => Promise.resolve(undefined) };
    const until = clock.now() + 1;
    const range = { since: until - HOUR_MS, until };
    const report = await createAudit({ table: memory, directory, queues, rules, clock }).run(range);
    expect(report).toMatchObject({ events: 2, unreadable: 1, published: 1 });
    expect(report.unreadableRows).toEqual([
      {
        eventId: deep,
        consumer: null,
        problem: 'its "envelope" is not a JSON string of at most 256 levels',
      },
    ]);
  });

  test('why and trace call the row unreadable, and a search skips it', async () => {
    const { mailroom, deep, other } = await withDeepRow();
    const { trace, verdict } = await why(mailroom, deep);
    expect(verdict).toMatchObject({ state: 'unreadable', eventId: deep });
    expect(unwrapped(traceText(shown(trace), payloadsOf(trace)))).toContain('at most 256 levels');
    expect(JSON.stringify(eventReports(trace, true))).toContain('UNREADABLE');
    const signal = new AbortController().signal;
    const search = { directory, table: mailroom.table, signal, onProgress: () => {} };
    const until = mailroom.clock.now();
    expect(await searchEvents(withStored(search), 'thing-1', { since: until - HOUR_MS, until })).toEqual([
      other,
    ]);
  });
});

test('a dead letter whose body is 50,000 levels deep is listed like one that is not JSON', async () => {
  const mailroom = mailroomInMemory([fine]);
  mailroom.addDeadLetter(worker.deadLetterQueue, {
    messageId: 'deep',
    receiptHandle: 'r',
    body: `{"detail-type":"ThingHappened","detail":${nested(DEEP)}}`,
    sentAt: mailroom.clock.now(),
    attributes: {},
  });
  const place = rejectedBy(worker);
  const { deadLetters } = await receiveDeadLetters(withStored({ ...mailroom, directory }), place, {
    limit: 10,
    hideS: 0,
  });
  expect(deadLetters).toMatchObject([{ id: 'deep', eventId: undefined, type: undefined }]);
});

/** The envelope of a message of an event, but for its payload. */
const wholeEnvelope = (eventId: string) => ({
  ...{ eventId, type: 'ThingHappened', version: 2, aggregateType: 'Thing', aggregateId: '1' },
  ...{ occurredAt: 1, correlationId: 'chain' },
});

describe('a message whose body is 50,000 levels deep', () => {
  test.each([
    ['in its payload', (eventId: string) => deepEnvelope(wholeEnvelope(eventId))],
    ['as a whole', () => nested(DEEP)],
    ['and is not JSON', () => '['.repeat(DEEP)],
  ])('%s is rejected as unreadable, and its neighbors are processed', async (_where, detail) => {
    const seen: string[] = [];
    const mailroom = mailroomInMemory([
      leased(ThingHappened, async ({ eventId }) => {
        seen.push(eventId);
      }),
    ]);
    const eventId = await published(mailroom);
    const body = `{"detail-type":"ThingHappened","detail":${detail(eventId)}}`;
    mailroom.queue.send(body);
    await mailroom.drain();
    expect(seen).toEqual([eventId]);
    expect(mailroom.memory.item(inboxKey(worker.name, eventId))).toMatchObject({ status: 'PROCESSED' });
    expect(mailroom.memory.item(inboxKey(worker.name, unreadableId(body)))).toMatchObject({
      status: 'REJECTED',
      reason: 'UNREADABLE_MESSAGE',
    });
  });
});

describe('an event whose payload is deep', () => {
  const commitOf = (levels: number) => {
    const { memory, clock } = rig();
    const outbox = createOutbox({ config: consumerConfig, table: memory, clock });
    const event = Anything.create({ aggregateId: 'a', data: JSON.parse(nested(levels)) });
    return outbox.commit({ events: [event] });
  };

  test.each([PAYLOAD_DEPTH_MAX + 2, DEEP])(
    'a payload of %i levels is refused, and the error names the limit',
    async (levels) => {
      await expect(commitOf(levels)).rejects.toMatchObject({
        code: 'INVALID_PAYLOAD',
        message: expect.stringMatching(
          /of Anything .* data is nested more than 100 levels deep\. Flatten it/,
        ),
      });
    },
  );

  test('a payload at the limit is written, and every reader can read it', async () => {
    const [envelope] = await commitOf(PAYLOAD_DEPTH_MAX);
    expect(isDeeperThan(JSON.stringify({ detail: envelope }), JSON_DEPTH_MAX)).toBe(false);
  });
});

test('an item of 50,000 levels is refused as one, and its size is counted without recursion', async () => {
  const { memory } = rig();
  const deep: unknown = JSON.parse(nested(DEEP));
  expect(itemBytes({ deep } as never)).toBeGreaterThan(0);
  const item = { PK: 'a', SK: 'b', deep } as never;
  await expect(memory.write({ Put: { Item: item } })).rejects.toMatchObject({ code: 'BAD_ITEM' });
});

test('an error of 50,000 causes is logged with the first of them', () => {
  let error = new Error('the first');
  for (let i = 0; i < DEEP; i += 1) error = new Error('one more', { cause: error });
  const lines: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((line) => lines.push(String(line)) > 0);
  vi.spyOn(process.stdout, 'write').mockImplementation((line) => lines.push(String(line)) > 0);
  createLogger('things').error('It failed', { error });
  vi.restoreAllMocks();
  expect(lines.join('').match(/one more"/g)).toHaveLength(11);
});

describe('a PENDING row that cannot be read', () => {
  test.each([
    ['with an id of an event', (key: object) => ({ ...key, status: 'PENDING', leaseUntil: 'soon' })],
    ['with no id', (key: object) => ({ ...key, SK: 'EVENT#nothing', status: 'PENDING' })],
  ])('shows in the gauge of the oldest pending event, and in the status: %s', async (_what, row) => {
    const mailroom = mailroomInMemory([fine]);
    const { clock, memory, telemetry, table, queues } = mailroom;
    const eventId = await commit(mailroom);
    await memory.write({ Delete: { Key: { ...outboxKeyOf(eventId) } } });
    await memory.write({ Put: { Item: { ...row(outboxKeyOf(eventId)) } } });
    const writtenAt = clock.now();
    await clock.advance(HOUR_MS);
    const sweep = createSweepPass({ ...mailroom, config: relayConfig });
    await runThrough(clock, sweep(clock.now() + 60_000));
    expect(telemetry.durations('OldestPendingAge').at(-1)).toBeGreaterThanOrEqual(HOUR_MS);
    const now = clock.now();
    const report = await readStatus(
      withStored({ directory, region: 'eu-west-1', table, queues, wiring: wired, now }),
    );
    expect(report.outbox).toMatchObject({ pending: 1, unreadable: 1 });
    expect(report.outbox.oldestPendingMs).toBeGreaterThanOrEqual(now - writtenAt);
    expect(report.ok).toBe(false);
  });
});

test('the measured depth of any JSON equals that of a full walk', () => {
  const depthOf = (value: unknown): number =>
    typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      const depth = depthOf(value);
      expect(isDeeperThan(JSON.stringify(value), depth)).toBe(false);
      if (depth > 0) expect(isDeeperThan(JSON.stringify(value), depth - 1)).toBe(true);
    }),
  );
});
