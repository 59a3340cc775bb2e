import type { Table } from '../../lambdas/runtime/store/table.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import { isDecision, settlesIf } from './operator-holes.ts';
import type { Hole } from './relay-holes.ts';
import { conditionWithout, tableTamper } from './tampered-table.ts';

/** The rules of a formal rejection and of a manual fix, one by one. */
export const REJECTION_HOLES: readonly Hole<InboxTamper>[] = [
  {
    rule: 'a rejection is made from the effects at its write',
    where: 'a formal rejection',
    needs: { stalls: 1, deviations: 4 },
    tamper: tableTamper({ update: conditionWithout(' AND effects = :seenEffects') }),
    found: /DISCARDED, with .*"refunds":0.*"charges":1/,
  },
  {
    rule: 'a claim between the read and the write of a rejection wins',
    where: 'a formal rejection of what is redriven',
    needs: { deviations: 3 },
    tamper: tableTamper({ update: settlesIf('attribute_not_exists(expiresAt)') }),
    found: /taken over while its lease was valid/,
  },
  {
    rule: 'what a rejection commits is in the transaction of its decision',
    where: 'a formal rejection',
    needs: { faults: 1, deviations: 2 },
    tamper: { tamperTable: (real) => decidedFirst(real) },
    found: /DISCARDED, with .*"rejections":0/,
  },
  {
    rule: 'what a manual fix commits is in the transaction of its decision',
    where: 'a manual fix',
    needs: { faults: 1, deviations: 2 },
    tamper: { tamperTable: (real) => decidedFirst(real) },
    found: /fixed, with .*"fixes":0/,
  },
];

/** The decision and its pointer in one transaction, the operator's other writes in a second one. */
function decidedFirst(real: Table): Table {
  return {
    ...real,
    transact: async (actions, token) => {
      const [first, pointer, ...writes] = actions;
      const decides = first?.Update !== undefined && isDecision(first.Update);
      if (!decides || pointer === undefined || writes.length === 0) return real.transact(actions, token);
      await real.transact([first, pointer], token);
      await real.transact(writes, `${token}-2`);
    },
  };
}
