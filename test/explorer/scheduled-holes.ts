import type { DynamoDBRecord } from 'aws-lambda';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { eventIdInSortKey, eventIdTime } from '../../lambdas/runtime/store/event-id.ts';
import { expiresAt } from '../../lambdas/runtime/store/row-expiry.ts';
import type { EachUpdate, Table, Update } from '../../lambdas/runtime/store/table.ts';
import { type Hole, withoutWrites } from './relay-holes.ts';
import type { Tamper } from './relay-world.ts';
import { conditionWithout, setsStatus, tamperedTable, withCondition } from './tampered-table.ts';

/** The rules of scheduled events, one by one. */
export const SCHEDULED_HOLES: readonly Hole<Tamper>[] = [
  {
    rule: 'the stream relay leaves a scheduled event alone until it is due',
    where: 'that is not due',
    tamper: { records: (records) => records.map(withoutDueTime) },
    found: /is published before it is due/,
  },
  {
    rule: 'a scheduled event is never published without a claim',
    where: 'committed after its minute was read',
    tamper: { records: (records) => records.map(asOrdinary) },
    found: /publishes .* after its lease/,
  },
  {
    rule: 'the lease of a claim ends after the due time',
    where: 'a scheduled event, a sweep, and a cancellation',
    tamper: { table: (real) => tamperedTable(real, { each: (update) => leasedAtBirth(update, false) }) },
    found: /publishes .* after its lease/,
  },
  {
    rule: 'the lease of a failed event ends after the due time',
    where: 'a scheduled event, a sweep, and a cancellation',
    needs: { faults: 1, deviations: 1 },
    tamper: { table: (real) => tamperedTable(real, { each: (update) => leasedAtBirth(update, true) }) },
    found: /cancelled although a relay had taken it|although it was cancelled/,
  },
  {
    rule: 'only a PENDING event is cancelled',
    where: 'two transactions that cancel it',
    tamper: { table: (real) => tamperedTable(real, { update: conditionWithout('#status = :PENDING AND ') }) },
    found: /cancelled in two transactions/,
  },
  {
    rule: 'an event that a relay has claimed is not cancelled',
    where: 'a scheduled event, a sweep, and a cancellation',
    needs: { deviations: 1 },
    tamper: { table: (real) => tamperedTable(real, { update: conditionWithout(' AND leaseUntil = dueAt') }) },
    found: /cancelled although a relay had taken it|although it was cancelled/,
  },
  {
    rule: 'a cancellation in a transaction is conditional too',
    where: 'a cancellation in a transaction',
    needs: { deviations: 1 },
    tamper: { table: (real) => tamperedTable(real, { update: conditionWithout(' AND leaseUntil = dueAt') }) },
    found: /cancelled although a relay had taken it|although it was cancelled/,
  },
  {
    rule: 'an event that a relay has claimed is not rescheduled',
    where: 'that is rescheduled',
    needs: { deviations: 1 },
    tamper: { table: (real) => tamperedTable(real, { update: conditionWithout(' AND leaseUntil = dueAt') }) },
    found: /cancelled although a relay had taken it|although it was cancelled/,
  },
  {
    rule: 'an event is rescheduled once',
    where: 'two producers that reschedule it',
    tamper: { table: (real) => tamperedTable(real, { update: conditionWithout('#status = :PENDING AND ') }) },
    found: /A cancelled event has 2 in its place|The row of a cancelled event was changed/,
  },
  {
    rule: 'a rescheduled event and the one in its place are one transaction',
    where: 'that is rescheduled',
    needs: { faults: 1, deviations: 1 },
    tamper: { table: putsLater },
    found: /A cancelled event has 0 in its place/,
  },
  {
    rule: 'a claim is conditional on PENDING',
    where: 'a scheduled event, a sweep, and a cancellation',
    needs: { deviations: 1 },
    tamper: { table: (real) => tamperedTable(real, { each: claimOfAnyStatus }) },
    found: /The row of a cancelled event was changed/,
  },
  {
    rule: 'a lease that is released ends after the due time',
    where: 'committed after its minute was read',
    needs: { faults: 1, deviations: 1 },
    tamper: { table: (real) => tamperedTable(real, { each: bornAgain }) },
    found: /cancelled although a relay had taken it|although it was cancelled/,
  },
  {
    rule: 'the lease of a requeued event ends after the due time',
    where: 'requeued by a clock that is behind',
    tamper: {
      table: (real, actor) =>
        tamperedTable(real, { update: (update) => leasedUntil(update, actor.clock.now()) }),
    },
    found: /cancelled although a relay had taken it/,
  },
  {
    rule: 'a cancelled row outlives its due time: until then, its entry could be committed again',
    where: 'committed again after a week',
    tamper: {
      table: (real, actor) =>
        tamperedTable(real, {
          update: (update) =>
            setsStatus(update, 'CANCELLED') ? expiring(update, actor.clock.now()) : update,
        }),
    },
    found: /A cancelled event was committed again/,
  },
  {
    rule: 'a producer that publishes at once leaves out a scheduled event',
    where: 'publish at once, with a scheduled event',
    tamper: {
      written: ({ dueAt, ...row }) => ({
        ...row,
        ...(dueAt !== undefined && { producerUntil: row.leaseUntil }),
      }),
    },
    found: /is published before it is due/,
  },
  {
    rule: 'a scheduled event in a higher shard is let go only after the range is raised',
    where: 'in two higher shards',
    tamper: withoutWrites('stream', ({ Update }) => Update?.Key?.PK === 'SWEEP'),
    found: /is stuck: PENDING, and no sweep comes to it/,
  },
  {
    rule: 'the number of shards is never lowered',
    where: 'in two higher shards',
    tamper: {
      table: (real) =>
        tamperedTable(real, {
          update: (update) =>
            update.ExpressionAttributeValues?.[':shards'] === undefined
              ? update
              : withCondition(update, undefined),
        }),
    },
    found: /is stuck: PENDING, and no sweep comes to it/,
  },
];

/** What a transaction puts, in a second one. */
function putsLater(real: Table): Table {
  return {
    ...real,
    transact: async (actions, token) => {
      const puts = actions.filter(({ Put }) => Put !== undefined);
      const others = actions.filter(({ Put }) => Put === undefined);
      if (puts.length === 0 || others.length === 0) return real.transact(actions, token);
      await real.transact(others, token);
      await real.transact(puts, `${token}-2`);
    },
  };
}

/** The record as a relay reads it that does not know scheduled events. */
function withoutDueTime(record: DynamoDBRecord): DynamoDBRecord {
  const { dueAt: _, ...NewImage } = record.dynamodb?.NewImage ?? {};
  return { ...record, dynamodb: { ...record.dynamodb, NewImage } };
}

/** The record as of an ordinary event that was born just now: fresh. */
function asOrdinary(record: DynamoDBRecord): DynamoDBRecord {
  const { dynamodb, ...rest } = withoutDueTime(record);
  const leaseUntil = { N: String(Number(dynamodb?.NewImage?.leaseUntil?.N) + 10 * MINUTE_MS) };
  return { ...rest, dynamodb: { ...dynamodb, NewImage: { ...dynamodb?.NewImage, leaseUntil } } };
}

/** The claim, or the failure, of a row stores its due time as its lease, which is that of its key's event id. */
function leasedAtBirth(update: EachUpdate, isFailure: boolean): EachUpdate {
  const eventId = eventIdInSortKey(update.key.SK);
  if (eventId === undefined || !('leaseUntil' in update.set) || 'attempts' in update.set !== isFailure)
    return update;
  return { ...update, set: { ...update.set, leaseUntil: eventIdTime(eventId) } };
}

function claimOfAnyStatus({ when, ...update }: EachUpdate): EachUpdate {
  const { status: _, ...others } = when;
  return { ...update, when: 'leaseUntil' in when ? others : when };
}

/** The stream relay releases a row to the lease of its image. */
function bornAgain(update: EachUpdate): EachUpdate {
  const { leaseUntil } = update.set;
  const isRelease = typeof leaseUntil === 'number' && !('attempts' in update.set) && leaseUntil % 10 === 1;
  return isRelease ? { ...update, set: { ...update.set, leaseUntil: leaseUntil - 1 } } : update;
}

function leasedUntil(update: Update, leaseUntil: number): Update {
  const { ':leaseUntil': stored, ...values } = update.ExpressionAttributeValues ?? {};
  if (stored === undefined) return update;
  return { ...update, ExpressionAttributeValues: { ...values, ':leaseUntil': leaseUntil } };
}

function expiring(update: Update, now: number): Update {
  const values = { ...update.ExpressionAttributeValues, ':expiresAt': expiresAt(now, 7) };
  return { ...update, ExpressionAttributeValues: values };
}
