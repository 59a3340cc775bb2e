import { ScanCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import type { MeteredAws } from '../aws/metered-aws.ts';
import { type BenchRun, createRun, type SendingHalf } from './composed-system.ts';
import { chunks } from './queue-delivery.ts';
import { DAY_S, isRefused, OUTBOX, streamedEvent, writeOrder } from './stored-outbox.ts';
import { type StoredEvent, storedEvent } from './workload.ts';

/**
 * The retention of published rows in seconds: a day, for inspection. DynamoDB's TTL deletes them within a few days of that
 * ("Using time to live (TTL) in DynamoDB"); the table size is computed without that delay.
 */
const RETENTION_S = DAY_S;

/** The interval between scans of the outbox: 5 seconds. */
const SCANS_PER_MINUTE = 12;

/** The number of rows of a larger table that are scanned (about one page); the rest is computed. */
const SAMPLE_ROWS = 1_000;

/** More scans of the outbox than this mean a defect in this file. */
const SCANS_MAX = 5;

/**
 * The two-table protocol: the order and its event in one transaction; the stream is the live path, and a scan of the whole outbox
 * every 5 seconds finds missed events; an event is marked published, then published, and the mark is rolled back if the bus
 * refuses.
 *
 * The mark comes first: after a crash between the mark and PutEvents, or a failed rollback, the event is never published.
 *
 * The tables, both paths and the conditional mark follow https://danieljohnmorris.com/writing/cloud-queue-inbox-outbox-pattern/,
 * which builds on https://newsletter.theburningmonk.com/posts/the-inbox-outbox-patterns-for-reliable-event-processing.
 */
export const twoTable: SendingHalf = {
  name: 'two-table',
  publishes: 'may lose',
  tables: [{ name: OUTBOX, keys: ['eventId'] }],
  write: (run, index) => writeOrder(run, index, () => ({ status: 'PENDING' })),
  relay: async (run) => {
    let left = 0;
    for (const batch of chunks(run.aws.takeInserts(OUTBOX), run.workload.batchSize)) {
      run.aws.book('lambda', 'Invoke', 1);
      for (const record of batch) left += (await publishMarked(run, streamedEvent(record))) ? 0 : 1;
    }
    for (let scans = 0; left > 0; scans += 1) {
      if (scans === SCANS_MAX) throw new Error(`${left} events are still not published`);
      left -= await publishPending(run);
    }
  },
  standing: async (aws, { eventsPerSecond, payloadBytes }) => {
    const rows = eventsPerSecond * RETENTION_S;
    const sample = Math.min(rows, SAMPLE_ROWS);
    const run = createRun(aws, { events: sample, payloadBytes, consumers: 0, retries: 0, batchSize: 1 });
    aws.seed(
      OUTBOX,
      Array.from({ length: sample }, (_, index) => ({
        ...storedEvent(index, payloadBytes),
        ...published(aws),
      })),
    );
    await aws.during('standing', () => scanPending(run));
    return SCANS_PER_MINUTE * (rows === 0 ? 1 : rows / sample);
  },
};

/** The backstop: publishes unmarked events. @returns their number */
export async function publishPending(run: BenchRun): Promise<number> {
  // The scan also runs when there is nothing to find.
  const pending = await run.aws.during('standing', () => scanPending(run));
  let taken = 0;
  for (const event of pending) taken += (await publishMarked(run, event)) ? 1 : 0;
  return taken;
}

/** @returns false if the bus refused the event and the mark was rolled back */
async function publishMarked(run: BenchRun, event: StoredEvent): Promise<boolean> {
  const key = { TableName: OUTBOX, Key: { eventId: event.eventId } };
  try {
    const { status, publishedAt, expiresAt } = published(run.aws);
    await run.documents.send(
      new UpdateCommand({
        ...key,
        UpdateExpression: 'SET #status = :published, publishedAt = :now, expiresAt = :expires',
        ConditionExpression: 'attribute_not_exists(publishedAt)',
        ExpressionAttributeNames: { '#status': 'status' },
        ExpressionAttributeValues: { ':published': status, ':now': publishedAt, ':expires': expiresAt },
      }),
    );
  } catch (error) {
    if (isRefused(error)) return true;
    throw error;
  }
  const [taken = false] = await run.publish([event]);
  if (taken) return true;
  await run.documents.send(
    new UpdateCommand({
      ...key,
      UpdateExpression: 'SET #status = :pending REMOVE publishedAt, expiresAt',
      ExpressionAttributeNames: { '#status': 'status' },
      ExpressionAttributeValues: { ':pending': 'PENDING' },
    }),
  );
  return false;
}

/** Reads the whole outbox; the filter applies after reading, so every row read is billed. */
async function scanPending({ documents }: BenchRun): Promise<StoredEvent[]> {
  const found: StoredEvent[] = [];
  let from: Record<string, unknown> | undefined;
  do {
    const page = await documents.send(
      new ScanCommand({
        TableName: OUTBOX,
        FilterExpression: '#status = :pending',
        ExpressionAttributeNames: { '#status': 'status' },
        ExpressionAttributeValues: { ':pending': 'PENDING' },
        ExclusiveStartKey: from,
      }),
    );
    found.push(...((page.Items ?? []) as StoredEvent[]));
    from = page.LastEvaluatedKey;
  } while (from);
  return found;
}

function published({ clock }: MeteredAws) {
  const now = clock.now();
  return { status: 'PUBLISHED', publishedAt: now, expiresAt: Math.ceil(now / 1_000) + RETENTION_S };
}
