import { paginateScan } from '@aws-sdk/lib-dynamodb';
import { DAY_S, OUTBOX, streamedEvent, updateOutbox, writeOrder } from './outbox-rows.ts';
import { chunks } from './queue-delivery.ts';
import { type BenchRun, createRun, type SendingHalf } from './system.ts';
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
    const published = { status: 'PUBLISHED', ...publishedAt(run) };
    const indexes = Array.from({ length: sample }, (_, index) => index);
    aws.seed(
      OUTBOX,
      indexes.map((index) => ({ ...storedEvent(index, payloadBytes), ...published })),
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
  const mark = 'SET #status = :status, publishedAt = :publishedAt, expiresAt = :expiresAt';
  const isMarked = await updateOutbox(run, event.eventId, mark, 'attribute_not_exists(publishedAt)', {
    status: 'PUBLISHED',
    ...publishedAt(run),
  });
  if (!isMarked) return true;
  const [taken = false] = await run.publish([event]);
  if (!taken)
    await updateOutbox(run, event.eventId, 'SET #status = :status REMOVE publishedAt, expiresAt', undefined, {
      status: 'PENDING',
    });
  return taken;
}

/** Reads the whole outbox; the filter applies after reading, so every row read is billed. */
async function scanPending({ documents }: BenchRun): Promise<StoredEvent[]> {
  const found: StoredEvent[] = [];
  const scan = {
    TableName: OUTBOX,
    FilterExpression: '#status = :pending',
    ExpressionAttributeNames: { '#status': 'status' },
    ExpressionAttributeValues: { ':pending': 'PENDING' },
  };
  for await (const { Items = [] } of paginateScan({ client: documents }, scan))
    found.push(...(Items as StoredEvent[]));
  return found;
}

function publishedAt({ aws }: BenchRun) {
  const now = aws.clock.now();
  return { publishedAt: now, expiresAt: Math.ceil(now / 1_000) + RETENTION_S };
}
