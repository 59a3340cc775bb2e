import { deflateRawSync } from 'node:zlib';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { auditText } from '../../cli/reports/audit/audit-text.ts';
import { deadLetterSource, receiveDeadLetters } from '../../cli/reports/dead-letters/dead-letters.ts';
import { searchEvents } from '../../cli/reports/events/search-events.ts';
import { messagesOf } from '../../cli/reports/messages/list-messages.ts';
import { readStatus } from '../../cli/reports/status/read-status.ts';
import { statusText } from '../../cli/reports/status/status-text.ts';
import { storyOf } from '../../cli/reports/why/story.ts';
import { eventReports, payloadsOf, traceText, verdictText } from '../../cli/reports/why/trace-text.ts';
import { isTime } from '../../lambdas/runtime/base/clock.ts';
import { HOUR_MS } from '../../lambdas/runtime/base/units.ts';
import { createAudit } from '../../lambdas/runtime/operations/audit/audit.ts';
import { isEventId, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { inboxKey, SWEEP_STATE_KEY } from '../../lambdas/runtime/store/keys.ts';
import { readInboxRow, readOutboxRow } from '../../lambdas/runtime/store/stored-rows.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import { withStored } from '../support/with-stored.ts';
import { directory, mailroomInMemory, worker } from '../unit/cli/support/mailroom-in-memory.ts';
import { wired } from '../unit/cli/support/resources-in-memory.ts';
import { commit, fine, type Mailroom, why } from '../unit/cli/support/why-rig.ts';
import { anyText } from './support/arbitraries.ts';
import { type Attributes, asItem, attributeName, storable } from './support/outbox-items.ts';
import { runs } from './support/runs.ts';

/** When the clocks of the rig begin. */
const COMMITTED_AT = Date.UTC(2026, 0, 1);

/** The attributes of all kinds of rows, so that those that are there matter. */
const names = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.constantFrom(
      ...['schema', 'status', 'fence', 'attempts', 'leaseUntil', 'endsBy', 'unfinished', 'outOfTime', 'type'],
      ...[
        'claimedAt',
        'processedAt',
        'startedAt',
        'completedAt',
        'retryAt',
        'rejectedAt',
        'rejectedIds',
        'reason',
      ],
      ...['lastError', 'fingerprint', 'resolvedBy', 'discardedBy', 'sentAt', 'failedAt', 'deadAt', 'source'],
      ...[
        'envelope',
        'encoding',
        'publishedAt',
        'publishedBy',
        'resentAt',
        'requeuedAt',
        'shards',
        'sweptTo',
        'unreadable',
      ],
    ),
  },
  { weight: 1, arbitrary: attributeName },
);

/** Any value, and more often one that could be right. */
const values: fc.Arbitrary<AttributeValue> = fc.oneof(
  storable,
  fc
    .constantFrom(
      'PENDING',
      'PUBLISHED',
      'DEAD',
      'DISCARDED',
      'PROCESSING',
      'PROCESSED',
      'FAILED',
      'REJECTED',
    )
    .map((S) => ({ S })),
  fc.constantFrom('IN_PROGRESS', 'COMPLETED', 'RELEASED', 'PARKED', 'deflate-raw').map((S) => ({ S })),
  fc.constantFrom('{}', '{"eventId":1}', '\u0000').map((text) => ({ B: deflateRawSync(text) })),
  fc.integer({ min: -1, max: 3 }).map((N) => ({ N: String(N) })),
  fc.integer({ min: -HOUR_MS, max: HOUR_MS }).map((ms) => ({ N: String(COMMITTED_AT + ms) })),
);

const attributes = fc.dictionary(names, values, { maxKeys: 8, noNullPrototype: true });
const sortKey = fc.oneof(
  anyText,
  anyText.map((text) => `EFFECT#${text}`),
  anyText.map((text) => `EVENT#${text}`),
);

/** Items of any shape: in place of the event's row and of its message's, beside them, and among pointers. */
const strange = fc.record({
  outbox: fc.option(attributes),
  message: fc.option(attributes, { freq: 9 }),
  beside: fc.array(
    fc.tuple(
      sortKey.filter((text) => text !== '' && text !== 'MESSAGE'),
      attributes,
    ),
    { maxLength: 3 },
  ),
  pointers: fc.array(
    fc.record({
      PK: fc.constantFrom('DEAD#00', 'SWEEP#00', `REJECTED#${worker.name}`, `FAILED#${worker.name}`),
      SK: fc.option(sortKey.filter((text) => text !== '')),
      item: attributes,
    }),
    { maxLength: 4 },
  ),
  sweep: fc.option(attributes, { freq: 2 }),
});

/** A published event, and what else the table holds. */
async function stored({
  outbox,
  message,
  beside,
  pointers,
  sweep,
}: typeof strange extends fc.Arbitrary<infer T> ? T : never) {
  const mailroom = mailroomInMemory([fine]);
  const eventId = await commit(mailroom);
  const set = { status: 'PUBLISHED', publishedAt: COMMITTED_AT };
  await mailroom.memory.updateEach([{ key: outboxKeyOf(eventId), set, when: { status: 'PENDING' } }]);
  await mailroom.clock.advance(400_000);
  const put = (key: object, attributes: Attributes, row: Item = {}) =>
    mailroom.memory.write({ Put: { Item: { ...row, ...asItem(attributes), ...key } } });
  const key = inboxKey(worker.name, eventId);
  if (outbox !== null) await put(outboxKeyOf(eventId), outbox, mailroom.memory.item(outboxKeyOf(eventId)));
  if (message !== null) await put(key, message, { schema: 1, status: 'PROCESSING', fence: 'f', attempts: 1 });
  for (const [SK, item] of beside) await put({ PK: key.PK, SK }, item);
  for (const [SK, item] of beside) await put({ PK: outboxKeyOf(eventId).PK, SK: `${SK}#` }, item);
  for (const { PK, SK, item } of pointers) await put({ PK, SK: SK ?? eventId }, item);
  if (sweep !== null) await put(SWEEP_STATE_KEY, sweep);
  return { mailroom, eventId, key };
}

it('why and trace never fail, and call processed only what is', async () => {
  await fc.assert(
    fc.asyncProperty(strange, async (contents) => {
      const { mailroom, eventId, key } = await stored(contents);
      const { verdict, trace } = await why(mailroom, eventId);
      for (const { at } of trace.events.flatMap(storyOf)) expect(at === null || isTime(at)).toBe(true);
      expect(
        `${verdictText(verdict)} ${traceText(trace, payloadsOf(trace))} ${JSON.stringify(eventReports(trace, true))}`,
      ).not.toBe('');
      if (verdict.state !== 'processed') return;
      expect(readOutboxRow(mailroom.memory.item(outboxKeyOf(eventId)))).toMatchObject({
        status: 'PUBLISHED',
      });
      const isFor = mailroom.memory.item(outboxKeyOf(eventId))?.type === 'ThingHappened';
      if (isFor && trace.events[0]?.messages.length === 1)
        expect(readInboxRow(mailroom.memory.item(key))).toMatchObject({ status: 'PROCESSED' });
    }),
    runs(150),
  );
});

it('the audit never fails, its books close, and no row that cannot be read is taken for another', async () => {
  await fc.assert(
    fc.asyncProperty(strange, async (contents) => {
      const { mailroom, eventId, key } = await stored(contents);
      const report = await audit(mailroom);
      const { published, pending, dead, discarded, unreadable } = report;
      expect(published + pending + dead + discarded + unreadable).toBe(report.events);
      const { expected, ...others } = report.consumers.worker ?? { expected: 0 };
      expect(Object.values(others).reduce((sum, count) => sum + count, 0)).toBe(expected);
      expect(report.unreadableRows).toHaveLength(unreadable + (report.consumers.worker?.unreadable ?? 0));
      const row = readInboxRow(mailroom.memory.item(key));
      const event = readOutboxRow(mailroom.memory.item(outboxKeyOf(eventId)));
      if (row !== undefined && 'unreadable' in row && event !== undefined && 'status' in event)
        expect(report.consumers.worker).toMatchObject({ processed: 0, missing: 0, waiting: 0 });
      expect(
        auditText(
          { report },
          {
            repair: 'audit --repair',
            apply: 'audit --apply',
            doctor: 'doctor',
            restore: ['deploy'],
            recheck: { at: 0, command: 'audit' },
          },
        ),
      ).not.toBe('');
    }),
    runs(150),
  );
});

it('status, lists and searches never fail', async () => {
  await fc.assert(
    fc.asyncProperty(strange, async (contents) => {
      const { mailroom, eventId } = await stored(contents);
      const { table, queues, clock } = mailroom;
      const now = clock.now();
      const report = await readStatus(
        withStored({ directory, region: 'eu-west-1', table, queues, wiring: wired, now }),
      );
      expect(
        statusText(report, { commandLine: (command) => command, awsLine: (command) => command }),
      ).not.toBe('');
      const messages = await messagesOf(withStored({ directory, table, queues, clock }), worker, {
        limit: 10,
      });
      for (const { at } of messages.items) expect(at === null || isTime(at)).toBe(true);
      await receiveDeadLetters(
        withStored({ directory, table, queues, clock }),
        deadLetterSource(directory, 'dead'),
        {
          limit: 10,
          hideS: 0,
        },
      );
      const search = { directory, table, signal: new AbortController().signal, onProgress: () => {} };
      const found = await searchEvents(withStored(search), eventId, { since: now - HOUR_MS, until: now });
      expect(found.every(isEventId)).toBe(true);
    }),
    runs(60),
  );
});

function audit({ memory, queues, clock }: Mailroom) {
  const until = clock.now() + 1;
  const rules = { describe: () => Promise.resolve(undefined) };
  return createAudit({ table: memory, directory, queues, rules, clock }).run({
    since: until - HOUR_MS,
    until,
  });
}
