import { describe, expect, test } from 'vitest';
import { dynamoRows } from '../../../cli/deployment/dynamo-rows.ts';
import type { DeadLetter, DeadLetterSource } from '../../../cli/reports/dead-letters/dead-letters.ts';
import {
  judgeDeadLetters,
  type RedriveVerdict,
  streamRange,
} from '../../../cli/reports/dead-letters/redrive-plan.ts';
import { DAY_MS } from '../../../lambdas/runtime/base/units.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import type { Check } from '../../../lambdas/runtime/sources/sqs/check-messages.ts';
import { mintEventId } from '../../../lambdas/runtime/store/event-id.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import { inboxHistoryKey } from '../../../lambdas/runtime/store/keys.ts';
import { memoryTable } from '../../../testing/index.ts';
import { startedLongAgo } from '../../support/runtime-rig.ts';

const NOW = Date.UTC(2026, 5, 1);

const source: DeadLetterSource = {
  name: 'consumer:payments',
  kind: 'consumer',
  url: 'dead-letters',
  consumer: { name: 'payments', inboxRetentionDays: 35 } as ConsumerEntry,
};

function deadLetter(row: Partial<InboxRow> | undefined, { ageDays = 1, body = 'readable' } = {}): DeadLetter {
  return {
    id: 'm1',
    eventId: mintEventId(NOW - ageDays * DAY_MS, 8),
    type: 'OrderPlaced',
    sentAt: NOW,
    expiresAt: NOW,
    fingerprint: undefined,
    lastError: undefined,
    received: { messageId: 'm1', receiptHandle: 'r', body, sentAt: NOW, attributes: {} },
    row: row as InboxRow | undefined,
  };
}

/** Judges dead letters with a consumer that can read all but one body. */
async function judge(
  deadLetters: readonly DeadLetter[],
  table = memoryTable(),
  at: DeadLetterSource = source,
) {
  const asked: string[] = [];
  const judged = await judgeDeadLetters(
    {
      stored: dynamoRows(table),
      now: NOW,
      check: async (_, bodies) => {
        asked.push(...bodies);
        return bodies.map((body): Check => {
          if (body === 'stale') return { ok: false, code: 'INVALID_PAYLOAD', message: 'no', staleFrom: 0 };
          return body === 'invalid'
            ? { ok: false, code: 'INVALID_PAYLOAD', message: 'no' }
            : { ok: true, eventId: 'e', type: 'OrderPlaced' };
        });
      },
    },
    at,
    deadLetters,
  );
  return { judged, asked };
}

describe('a dead letter', () => {
  test.each<[string, Partial<InboxRow> | undefined, RedriveVerdict, number?]>([
    ['without a row', undefined, 'runs'],
    ['that was rejected', { status: 'REJECTED', reason: 'ATTEMPTS_EXHAUSTED' }, 'runs'],
    ['that was processed', { status: 'PROCESSED' }, 'handled'],
    ['that was discarded', { status: 'DISCARDED' }, 'handled'],
    ['under a lease', { status: 'PROCESSING', leaseUntil: NOW + 1 }, 'busy'],
    [
      'whose lease is over by less than clocks may differ',
      { status: 'PROCESSING', leaseUntil: NOW - 2_000 },
      'busy',
    ],
    ['left without a lease', { status: 'PROCESSING' }, 'runs'],
    ['whose lease has passed', { status: 'PROCESSING', leaseUntil: NOW - 2_001 }, 'runs'],
    ['that waits for its next attempt', { status: 'FAILED', retryAt: NOW + 1 }, 'busy'],
    ['whose last receive failed', { status: 'FAILED', retryAt: NOW - 1 }, 'runs'],
    ['without a row and older than the inbox remembers', undefined, 'too-old', 36],
    ['rejected for its age', { status: 'REJECTED', reason: 'EVENT_TOO_OLD' }, 'too-old', 36],
    [
      'rejected for its age and allowed since',
      { status: 'REJECTED', reason: 'EVENT_TOO_OLD', runAnyway: true },
      'runs',
      36,
    ],
    ['as old, but remembered', { status: 'REJECTED', reason: 'POISON_MESSAGE' }, 'runs', 36],
  ])('%s', async (_, row, verdict, ageDays = 1) => {
    const table = memoryTable();
    await startedLongAgo(table, 'payments', 35);
    const { judged } = await judge([deadLetter(row, { ageDays })], table);
    expect(judged).toMatchObject([{ verdict }]);
  });

  test.each<[string, Partial<InboxRow> | undefined, RedriveVerdict, number?]>([
    ['without a row', undefined, 'stale'],
    ['that was rejected', { status: 'REJECTED', reason: 'INVALID_PAYLOAD' }, 'stale'],
    ['that is too old', undefined, 'fails', 36],
    ['that was allowed', { status: 'REJECTED', reason: 'EVENT_TOO_OLD', runAnyway: true }, 'fails', 36],
  ])('that is stale and cannot be read, %s', async (_, row, verdict, ageDays = 1) => {
    const table = memoryTable();
    await startedLongAgo(table, 'payments', 35);
    const { judged } = await judge([deadLetter(row, { ageDays, body: 'stale' })], table);
    expect(judged).toMatchObject([{ verdict }]);
  });

  test('without a row runs in a consumer that has not started, however old it is', async () => {
    expect((await judge([deadLetter(undefined, { ageDays: 300 })])).judged).toMatchObject([
      { verdict: 'runs' },
    ]);
  });

  const next = mintEventId(NOW, 8);
  const replaced = { status: 'DISCARDED', replacedBy: next } as const;

  test.each<[string, Partial<InboxRow> | undefined, RedriveVerdict, string?]>([
    ['was never received', undefined, 'unsent', `replaced by ${next}, which its consumer has not received`],
    ['is processed', { status: 'PROCESSED' }, 'handled'],
    ['is rejected, and has its own dead letter', { status: 'REJECTED' }, 'handled'],
    ['is held by a worker', { status: 'PROCESSING', leaseUntil: NOW + 1 }, 'handled'],
    ['is discarded', { status: 'DISCARDED', discardedReason: 'not needed' }, 'handled'],
    ['has a status of a newer version', { status: 'PARKED' as 'FAILED' }, 'unreadable'],
  ])('whose event was replaced by one that %s', async (_, row, verdict, message) => {
    const replacements = [{ eventId: next, row: row as InboxRow | undefined }];
    const { judged, asked } = await judge([{ ...deadLetter(replaced), replacements }]);
    expect(judged).toMatchObject([{ verdict, message }]);
    expect(asked).toEqual([]);
  });

  test('whose replacement was not read is not handled', async () => {
    expect((await judge([deadLetter(replaced)])).judged).toMatchObject([{ verdict: 'unsent' }]);
  });

  test('without a row is too old by the shortest retention since its event was written', async () => {
    const table = memoryTable();
    const retentions = [
      { days: 10, since: NOW - 60 * DAY_MS },
      { days: 35, since: NOW - 20 * DAY_MS },
    ];
    const history = {
      ...inboxHistoryKey('payments'),
      schema: 1,
      retentions,
      changedAt: retentions[1]?.since,
    };
    await table.write({ Put: { Item: history } });
    const { judged } = await judge(
      [25, 18].map((ageDays) => deadLetter(undefined, { ageDays })),
      table,
    );
    expect(judged).toMatchObject([{ verdict: 'too-old' }, { verdict: 'runs' }]);
  });

  test('without a row and from before its consumer got its name is too old', async () => {
    const consumer = { ...source.consumer, inboxSince: NOW - 2 * DAY_MS } as ConsumerEntry;
    const deadLetters = [3, 1].map((ageDays) => deadLetter(undefined, { ageDays }));
    const { judged } = await judge(deadLetters, memoryTable(), { ...source, consumer });
    expect(judged).toMatchObject([{ verdict: 'too-old' }, { verdict: 'runs' }]);
  });

  test('a message that the deployed code cannot read still fails, with the reason; a handled one is not checked', async () => {
    const { judged, asked } = await judge([
      deadLetter({ status: 'PROCESSED' }, { body: 'invalid' }),
      deadLetter({ status: 'REJECTED', reason: 'EVENT_TOO_OLD' }, { body: 'invalid' }),
      deadLetter(undefined),
    ]);
    expect(judged).toMatchObject([
      { verdict: 'handled' },
      { verdict: 'fails', code: 'INVALID_PAYLOAD', message: 'no' },
      { verdict: 'runs' },
    ]);
    expect(asked).toEqual(['invalid', 'readable']);
  });
});

describe('a dead letter of the stream', () => {
  const at = '2026-06-01T10:00:00Z';
  const withBody = (body: string) => streamRange(deadLetter(undefined, { body }));
  const batch = (first: string, last: string) =>
    JSON.stringify({
      DDBStreamBatchInfo: { approximateArrivalOfFirstRecord: first, approximateArrivalOfLastRecord: last },
    });

  test('means the minutes in which its events were minted, in every shard', () => {
    expect(withBody(batch(at, '2026-06-01T10:02:00Z'))).toEqual({
      since: Date.parse('2026-06-01T09:54:00Z'),
      until: Date.parse('2026-06-01T10:03:00Z'),
      shards: 256,
    });
  });

  test.each(['no JSON', '5', '{}', batch('soon', at), batch(at, '2026-06-01T09:00:00Z')])(
    'a stream dead letter that says %s means no event',
    (body) => expect(withBody(body)).toBeUndefined(),
  );
});
