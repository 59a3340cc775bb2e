import type { Table, Update } from '../../lambdas/runtime/store/table.ts';
import type { Hole } from './relay-holes.ts';
import type { Tamper } from './relay-world.ts';
import { conditionWithout, tamperedTable } from './tampered-table.ts';

/** The rules of the repair of an event's row, one by one. */
export const CHANGED_HOLES: readonly Hole<Tamper>[] = [
  {
    rule: 'a row is made due only under the lease that was read',
    where: 'beside another one',
    needs: { stalls: 1, deviations: 1 },
    tamper: {
      table: (real) =>
        tamperedTable(real, { update: ofRepair(conditionWithout(' AND #leaseUntil = :was_leaseUntil')) }),
    },
    found: /changed a row under the lease of/,
  },
  {
    rule: 'a row is made due only while it is PENDING',
    where: 'the stream, and an operator',
    needs: { deviations: 1 },
    tamper: {
      table: (real) =>
        tamperedTable(real, { update: ofRepair(conditionWithout('#status = :was_status AND ')) }),
    },
    found: /The row of a published event was changed/,
  },
  {
    rule: 'the minute of a row that is made due becomes unsettled',
    where: 'beside another one',
    tamper: { table: withoutPointer },
    found: /is stuck: PENDING, and no sweep comes to it/,
  },
  {
    rule: 'a row is made due in a minute: the stream relay may be publishing it',
    where: 'the stream, and an operator',
    tamper: {
      table: (real, actor) =>
        tamperedTable(real, { update: ofRepair((update) => dueAt(update, actor.clock.now() - 1)) }),
    },
    found: /after its lease/,
  },
];

/** Only the update that makes a row due: it sets a lease, and keeps the status. */
function ofRepair(tamper: (update: Update) => Update): (update: Update) => Update {
  return (update) => (update.UpdateExpression === 'SET #leaseUntil = :leaseUntil' ? tamper(update) : update);
}

function dueAt(update: Update, leaseUntil: number): Update {
  const values = { ...update.ExpressionAttributeValues, ':leaseUntil': leaseUntil };
  return { ...update, ExpressionAttributeValues: values };
}

/** An operator's transaction without its pointer to the minute. */
function withoutPointer(real: Table): Table {
  return {
    ...real,
    transact: (actions, token) =>
      real.transact(
        actions.filter(({ Put }) => !String(Put?.Item?.PK).startsWith('SWEEP#')),
        token,
      ),
  };
}
