import type { Table } from '../../lambdas/runtime/store/table.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Hole } from './relay-holes.ts';
import { replacedCondition, setsStatus, tableTamper } from './tampered-table.ts';

/** The table whose claims do not return the effects of earlier ones. */
function withoutEffects(table: Table): Table {
  return {
    ...table,
    write: async (made) => {
      const item = await table.write(made);
      return item?.effects === undefined ? item : { ...item, effects: {} };
    },
  };
}

/** The rules of a stale message, one by one. */
export const STALE_HOLES: readonly Hole<InboxTamper>[] = [
  {
    rule: 'a message with an effect is not stale',
    where: 'an effect, stale after a takeover',
    needs: { stalls: 1, deviations: 1 },
    tamper: { tamperTable: withoutEffects },
    found: /was discarded as stale after an effect of it/,
  },
  {
    rule: 'a message is discarded as stale only under the fence of the claim that has read its effects',
    where: 'an effect, stale for one of two releases',
    needs: { stalls: 1, deviations: 2 },
    tamper: tableTamper({
      update: (update) =>
        setsStatus(update, 'DISCARDED')
          ? replacedCondition(update, 'fence = :heldFence', 'attribute_exists(PK)')
          : update,
    }),
    found: /A worker changed a message that another worker holds: PROCESSING to DISCARDED/,
  },
];
