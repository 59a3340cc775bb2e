import type { Table, Update } from '../../lambdas/runtime/store/table.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Hole } from './relay-holes.ts';
import { conditionWithout, setsStatus, tableTamper, withCondition } from './tampered-table.ts';

/** The rules of an operator's decision about a message, one by one. */
export const OPERATOR_HOLES: readonly Hole<InboxTamper>[] = [
  {
    rule: 'an operator goes by the time of AWS',
    where: 'whose clock is ahead',
    needs: { deviations: 1 },
    tamper: { tamperClock: ({ clock }) => clock },
    found: /taken over while its lease was valid/,
  },
  {
    rule: "a claim between an operator's look and the write wins",
    where: 'who discards',
    needs: { deviations: 3 },
    tamper: tableTamper({ update: settlesIf('attribute_not_exists(expiresAt)') }),
    found: /taken over while its lease was valid/,
  },
  {
    rule: "a renewal between an operator's look and the write wins",
    where: 'who resolves',
    needs: { stalls: 1, deviations: 4 },
    tamper: tableTamper({ update: conditionWithout(' AND leaseUntil = :seenLeaseUntil') }),
    found: /taken over while its lease was valid/,
  },
  {
    rule: 'what is processed is not discarded',
    where: 'discards what is redriven',
    needs: { deviations: 2 },
    tamper: tableTamper({ update: settlesIf('attribute_exists(PK)') }),
    found: /A processed message became DISCARDED/,
  },
  {
    rule: 'what is processed is not resolved, by force neither',
    where: 'by force',
    tamper: tableTamper({ update: settlesIf('attribute_exists(PK)') }),
    found: /An operator settled the message, and its effect was applied/,
  },
  {
    rule: 'a commit is refused once an operator has taken the message',
    where: 'by force',
    needs: { deviations: 1 },
    tamper: tableTamper({
      update: (update) =>
        setsStatus(update, 'PROCESSED') && update.UpdateExpression?.includes('commitId')
          ? withCondition(update, 'attribute_exists(fence)')
          : update,
    }),
    found: /An operator settled the message, and its effect was applied/,
  },
  {
    rule: 'what starts a side effect between the look and the write wins over an operator who has not checked',
    where: 'what may charge',
    needs: { deviations: 2 },
    tamper: tableTamper({ update: conditionWithout(' AND effects = :seenEffects') }),
    found: /The effects are "worker:.*:charge"/,
  },
  {
    rule: 'a rejected message that is discarded loses its pointer in the same transaction',
    where: 'discards what is redriven',
    needs: { deviations: 1 },
    tamper: { tamperTable: (real) => pointersStay(real) },
    found: /A REJECTED row and its pointer differ/,
  },
  {
    rule: 'a message that was set REJECTED by hand is listed only as it was read',
    where: 'who lists a rejected message',
    needs: { deviations: 2 },
    tamper: tableTamper({
      update: (update) => (isListing(update) ? withCondition(update, '#schema <= :schema') : update),
    }),
    found: /A REJECTED row and its pointer differ/,
  },
];

/** True for the repair of a message without its pointer: it keeps the status. */
function isListing({ UpdateExpression = '' }: Update): boolean {
  return UpdateExpression.includes('rejectedAt = ') && !UpdateExpression.includes('#status = ');
}

/** Whether an operator takes the message: the update says who did. */
export function isDecision({ UpdateExpression = '' }: Update): boolean {
  return /(resolved|discarded)By = /.test(UpdateExpression);
}

/** An operator's decision under another condition. */
export function settlesIf(condition: string): (update: Update) => Update {
  return (update) => (isDecision(update) ? withCondition(update, condition) : update);
}

/** An operator's decision is the row's alone. */
function pointersStay(real: Table): Table {
  return {
    ...real,
    transact: (actions, token) => {
      const [first] = actions;
      const decides = first?.Update !== undefined && isDecision(first.Update);
      return real.transact(decides ? [first] : actions, token);
    },
  };
}
