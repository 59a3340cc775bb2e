import { randomUUID } from 'node:crypto';
import { paginateQuery } from '@aws-sdk/lib-dynamodb';
import { eventIdShard } from '../../lambdas/runtime/store/event-id.ts';
import { DAY_S, OUTBOX, updateOutbox, writeOrder } from './outbox-rows.ts';
import { chunks } from './queue-delivery.ts';
import { type BenchRun, createRun, type SendingHalf } from './system.ts';

/** The index: unfinished rows, by shard, oldest first. */
const OUTSTANDING = 'outstanding';

/**
 * The number of partitions of the index. One takes 1,000 write units per second (DynamoDB developer guide, "Best practices for
 * designing and using partition keys effectively"): 500 events, each put into it and deleted again.
 */
const SHARDS = 8;

/** The polling interval of each shard: every second, as in outbox-event-bus. */
const POLLS_PER_MINUTE = 60;

/** The lease of a claim in milliseconds. */
const LEASE_MS = 30_000;

/** The retention of a finished row in seconds. */
const RETENTION_S = 7 * DAY_S;

/** More rounds of polling all shards than this mean a defect in this file. */
const ROUNDS_MAX = 5;

/**
 * An outbox with a sparse index on unfinished rows: poll the index, claim under a lease, publish, complete; an event that the bus
 * refuses is released. A finished row leaves the index.
 *
 * At least once: a claim whose owner crashed is open again when its lease expires, and the row is still in the index.
 *
 * Poll, claim and complete follow outbox-event-bus (dunika/outbox-event-bus, `adapters/dynamodb-aws-sdk`); the sparse, sharded
 * index is Brighter's (BrighterCommand/Brighter, pull request 3295), which does not claim. This is cheaper than outbox-event-bus,
 * whose index contains whole rows and whose claim moves the entry: here the index contains only keys (one write unit, whatever
 * the payload), the claim returns the row, and the lease is not a key.
 */
export const statusIndex: SendingHalf = {
  name: 'status-index',
  publishes: 'at least once',
  tables: [
    {
      name: OUTBOX,
      keys: ['eventId'],
      indexes: [{ name: OUTSTANDING, keys: ['outstanding', 'createdAt'], projects: 'keys' }],
    },
  ],
  write: (run, index) =>
    writeOrder(run, index, ({ eventId }) => ({
      status: 'PENDING',
      outstanding: shardName(eventIdShard(eventId) % SHARDS),
    })),
  relay: async (run) => {
    let left = run.workload.events;
    for (let rounds = 0; left > 0; rounds += 1) {
      if (rounds === ROUNDS_MAX) throw new Error(`${left} events are still not published`);
      run.aws.book('lambda', 'Invoke', 1);
      for (let shard = 0; shard < SHARDS; shard += 1) {
        const found = await outstanding(run, shard);
        for (const eventIds of chunks(found, run.workload.batchSize)) left -= await publishAll(run, eventIds);
      }
    }
  },
  standing: async (aws, { eventsPerSecond, payloadBytes }) => {
    const run = createRun(aws, { events: 0, payloadBytes, consumers: 0, retries: 0, batchSize: 1 });
    await aws.during('standing', async () => {
      for (let shard = 0; shard < SHARDS; shard += 1) await outstanding(run, shard);
    });
    // A poll that finds events belongs to `relay`; only the empty ones count here, by a Poisson distribution.
    const eventsPerPoll = (eventsPerSecond / SHARDS) * (60 / POLLS_PER_MINUTE);
    return POLLS_PER_MINUTE * Math.exp(-eventsPerPoll);
  },
};

/** Polls one shard. An index is read eventually consistent, so the claim's condition decides. */
async function outstanding({ documents }: BenchRun, shard: number): Promise<string[]> {
  const eventIds: string[] = [];
  const query = {
    TableName: OUTBOX,
    IndexName: OUTSTANDING,
    KeyConditionExpression: 'outstanding = :shard',
    ExpressionAttributeValues: { ':shard': shardName(shard) },
  };
  for await (const { Items = [] } of paginateQuery({ client: documents }, query))
    eventIds.push(...Items.map(({ eventId }) => String(eventId)));
  return eventIds;
}

/** Claims, publishes, and completes or releases. @returns the number of published events */
async function publishAll(run: BenchRun, eventIds: readonly string[]): Promise<number> {
  const owner = randomUUID();
  const now = run.aws.clock.now();
  // A row that is finished, or claimed by another worker, refuses the claim.
  const claim = 'SET #status = :status, #owner = :owner, leaseUntil = :leaseUntil';
  const isOpen = 'attribute_exists(outstanding) AND (#status = :pending OR leaseUntil < :now)';
  const claimed = { status: 'CLAIMED', pending: 'PENDING', owner, leaseUntil: now + LEASE_MS, now };
  const found = [];
  for (const eventId of eventIds) found.push(await updateOutbox(run, eventId, claim, isOpen, claimed));
  const events = found.filter((event) => event !== undefined);
  const taken = await run.publish(events);
  // Refused if the lease expired and another worker claimed the row; that worker publishes it again.
  const settle = (eventId: string, update: string, values: object) =>
    updateOutbox(run, eventId, `${update} leaseUntil, #owner`, '#owner = :owner', { ...values, owner });
  const complete = 'SET #status = :status, publishedAt = :now, expiresAt = :expires REMOVE outstanding,';
  const published = { status: 'PUBLISHED', now, expires: Math.ceil(now / 1_000) + RETENTION_S };
  for (const [index, { eventId }] of events.entries()) {
    if (taken[index]) await settle(eventId, complete, published);
    else await settle(eventId, 'SET #status = :status REMOVE', { status: 'PENDING' });
  }
  return taken.filter(Boolean).length;
}

function shardName(shard: number): string {
  return `SHARD#${shard}`;
}
