import type { DynamoDBRecord } from 'aws-lambda';
import type { Bus } from '../../lambdas/runtime/bus/event-bus.ts';
import { outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import type { Write } from '../../lambdas/runtime/store/table.ts';
import type { Budget } from '../../testing/explorer/actor.ts';
import type { Tamper } from './relay-world.ts';
import {
  setsStatus,
  type TableTamper,
  tamperedTable,
  withCondition,
  withoutStrongReads,
} from './tampered-table.ts';

/** A rule of the protocol that is taken away, and what the explorer has to find then. */
export interface Hole<T> {
  readonly rule: string;
  readonly tamper: T;
  /** The setting in which it shows. */
  readonly where: string;
  /**
   * The faults that it takes there, and the deviations of the nearest schedule that shows it: `npm run test:nightly` checks that fewer do
   * not show it. @default none
   */
  readonly needs?: Partial<Budget> & { readonly deviations?: number };
  readonly found: RegExp;
}

/** How long a claim of the relay lasts in these tests, milliseconds. */
const CLAIM_LEASE_MS = 30_000;

const MARGIN_MS = 2_000;

const HOUR_S = 3_600;

function table(tamper: TableTamper): Tamper {
  return { table: (real) => tamperedTable(real, tamper) };
}

/** The rules of the outbox, one by one. */
export const RELAY_HOLES: readonly Hole<Tamper>[] = [
  {
    rule: 'publish first, mark second',
    where: 'a stream that is late',
    needs: { faults: 1, deviations: 1 },
    tamper: { bus: (bus, real) => markFirst(bus, real) },
    found: /is lost: PUBLISHED, but the bus never took it/,
  },
  {
    rule: "every entry's own result is read",
    where: 'a stream that is late',
    needs: { faults: 1, deviations: 1 },
    tamper: { bus: allAccepted },
    found: /is lost: PUBLISHED, but the bus never took it/,
  },
  {
    rule: 'a claim is conditional on the lease as it was read',
    where: 'a stream that is late',
    tamper: {
      table: (real, actor) =>
        tamperedTable(real, {
          each: (update) =>
            update.set.leaseUntil === actor.clock.now() + CLAIM_LEASE_MS ? { ...update, when: {} } : update,
        }),
    },
    found: /published 2 times, without a fault/,
  },
  {
    rule: 'a failure update is conditional on the lease that is held',
    where: 'two events in one batch',
    needs: { faults: 2, deviations: 2 },
    tamper: table({ each: (update) => ('attempts' in update.set ? { ...update, when: {} } : update) }),
    found: /The row of a published event was changed|under the lease of/,
  },
  {
    rule: 'DEAD is conditional on the lease that is held',
    where: 'an event that may be refused',
    needs: { faults: 1, stalls: 1, deviations: 3 },
    tamper: table({
      update: (update) => (setsStatus(update, 'DEAD') ? withCondition(update, undefined) : update),
    }),
    found: /The row of a published event was changed to DEAD/,
  },
  {
    rule: 'a mark is conditional on PENDING',
    where: 'an event that may be refused',
    needs: { faults: 1, stalls: 1, deviations: 3 },
    tamper: table({
      each: (update) => (update.set.status === 'PUBLISHED' ? { ...update, when: {} } : update),
    }),
    found: /DEAD rows and their pointers differ/,
  },
  {
    rule: 'the sweep stores the time at which its pass started',
    where: 'a minute that comes',
    needs: { stalls: 1, deviations: 1 },
    tamper: {
      table: (real, actor) =>
        tamperedTable(real, {
          update: (update) =>
            update.ExpressionAttributeValues?.[':to'] === undefined
              ? update
              : {
                  ...update,
                  ExpressionAttributeValues: {
                    ...update.ExpressionAttributeValues,
                    ':to': actor.clock.now(),
                  },
                },
        }),
    },
    found: /is stuck: PENDING, and no sweep comes to it/,
  },
  {
    rule: 'an unsettled pointer is removed only under the token that was read',
    where: 'a requeue and a sweep',
    needs: { deviations: 1 },
    tamper: table({
      action: (action) => (action.Delete === undefined ? action : { Delete: { Key: action.Delete.Key } }),
    }),
    found: /is stuck: PENDING, and no sweep comes to it/,
  },
  {
    rule: 'what the first part of a walk left PENDING keeps the minute unsettled',
    where: 'a minute that takes more than one pass',
    needs: { faults: 1, deviations: 1 },
    tamper: table({
      action: (action) => {
        const { left: _forgotten, ...Item } = action.Put?.Item ?? {};
        return action.Put?.Item?.PK === 'SWEEP#00' ? { Put: { ...action.Put, Item } } : action;
      },
    }),
    found: /is stuck: PENDING, and no sweep comes to it/,
  },
  {
    rule: 'a walk keeps its place only under the token that was read',
    where: 'a requeue in a minute that takes more than one pass',
    needs: { faults: 1, deviations: 2 },
    tamper: table({
      action: (action) =>
        action.Put?.Item?.after === undefined ? action : { Put: { Item: action.Put.Item } },
    }),
    found: /is stuck: PENDING, and no sweep comes to it/,
  },
  {
    rule: 'an unsettled minute is read strongly consistently',
    where: 'a requeue and a sweep',
    needs: { faults: 1, deviations: 2 },
    tamper: { table: withoutStrongReads },
    found: /is stuck: PENDING, and no sweep comes to it/,
  },
  {
    rule: 'a minute with a leased row is unsettled',
    where: 'sweeps at the last age',
    needs: { faults: 1, deviations: 1 },
    tamper: {
      table: (real, actor) =>
        tamperedTable(real, {
          found: (item) => !(Number(item.leaseUntil) + MARGIN_MS >= actor.clock.now()),
        }),
    },
    found: /is stuck: PENDING, and no sweep comes to it/,
  },
  {
    rule: 'a minute that could not be read is unsettled',
    where: 'an old minute and a newer one',
    needs: { faults: 1, deviations: 1 },
    tamper: {
      table: (real) => ({
        ...real,
        query: (query) =>
          real.query(query).catch((error: unknown) => {
            if (query.pk.startsWith('OUTBOX#') && query.consistent !== true) return { items: [] };
            throw error;
          }),
      }),
    },
    found: /is stuck: PENDING, and no sweep comes to it/,
  },
  {
    rule: 'the state stays before a minute that has no pointer',
    where: 'sweeps at the last age',
    needs: { faults: 2, deviations: 2 },
    tamper: {
      table: (real) => ({
        ...real,
        write: (write) =>
          real.write(write).catch((error: unknown) => {
            if (write.Put?.Item?.PK === 'SWEEP#00') return undefined;
            throw error;
          }),
      }),
    },
    found: /is stuck: PENDING, and no sweep comes to it/,
  },
  {
    rule: 'a fresh record is published without a claim only while its lease lasts',
    where: 'a producer whose clock',
    tamper: { records: (records) => records.map(withLongLease) },
    found: /publishes .* (after its lease|under the lease of)|published 2 times, without a fault/,
  },
  {
    rule: 'only declared sources are published',
    where: 'an event with an undeclared source in front of a good one',
    tamper: { config: { sources: undefined } },
    found: /is published, but its source is not declared/,
  },
  {
    rule: "a higher shard raises the sweep's range",
    where: 'an event in a higher shard, the stream, and a sweep',
    needs: { faults: 1, deviations: 1 },
    tamper: withoutWrites('stream', ({ Update }) => Update?.Key?.PK === 'SWEEP'),
    found: /is stuck: PENDING, and no sweep comes to it/,
  },
  {
    rule: 'a minute of a higher shard whose ages have passed gets a pointer',
    where: 'an old event in a higher shard, and the stream',
    needs: { faults: 1, deviations: 1 },
    tamper: withoutWrites('stream', ({ Put }) => Put?.Item?.PK === 'SWEEP#01'),
    found: /is stuck: PENDING, and no sweep comes to it/,
  },
  {
    rule: 'TTL is set only when an event is PUBLISHED',
    where: 'a stream that is late',
    tamper: { seeded: (row) => ({ ...row, expiresAt: Math.ceil(Number(row.leaseUntil) / 1_000) + HOUR_S }) },
    found: /TTL may delete an event that is PENDING/,
  },
];

/** A table in which some writes of some actors never happen, although they succeed. */
export function withoutWrites(actors: string, lost: (write: Write) => boolean): Tamper {
  return {
    table: (real, actor) => ({
      ...real,
      write: async (write) => (actor.name.startsWith(actors) && lost(write) ? undefined : real.write(write)),
    }),
  };
}

/** A bus that reports every entry as accepted. */
export function allAccepted(bus: Bus): Bus {
  return {
    put: async (entries, timeoutMs) => {
      await bus.put(entries, timeoutMs);
      return entries.map(() => ({ ok: true, id: 'assumed' }));
    },
  };
}

/** A bus that marks what it is about to publish. */
export function markFirst(bus: Bus, real: Parameters<NonNullable<Tamper['bus']>>[1]): Bus {
  return {
    put: async (entries, timeoutMs) => {
      const keys = entries.map(({ detail }) =>
        outboxKeyOf((JSON.parse(detail) as { eventId: string }).eventId),
      );
      const set = { status: 'PUBLISHED', publishedAt: 0, expiresAt: 9_999_999_999 };
      await real.updateEach(keys.map((key) => ({ key, set, when: { status: 'PENDING' } })));
      return bus.put(entries, timeoutMs);
    },
  };
}

function withLongLease(record: DynamoDBRecord): DynamoDBRecord {
  const image = record.dynamodb?.NewImage;
  if (image === undefined) return record;
  const leaseUntil = { N: String(Number(image.leaseUntil?.N) + HOUR_S * 1_000) };
  return { ...record, dynamodb: { ...record.dynamodb, NewImage: { ...image, leaseUntil } } };
}
