import { isExternal } from '../../lambdas/runtime/events/external-event.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Hole } from './relay-holes.ts';

/** EventBridge's own id takes the place of the definition's fields. */
const WITHOUT_ID: InboxTamper = {
  tamperHandler: (handler) => {
    const { definition } = handler;
    return isExternal(definition) ? { ...handler, definition: { ...definition, external: {} } } : handler;
  },
};

/** The rules of what identifies an event, one by one. */
export const EVENT_HOLES: readonly Hole<InboxTamper>[] = [
  {
    rule: 'an external event is identified by its own fields',
    where: 'an external event in three messages',
    tamper: WITHOUT_ID,
    found: /The effects were applied "p-7: 2/,
  },
  {
    rule: 'a message that was settled while it could not be read does not run once it can be',
    where: 'resolved while it could not be read',
    tamper: {
      tamperTable: (table) => ({ ...table, get: async (...args) => withoutMarks(await table.get(...args)) }),
    },
    found: /The effects were applied "p-7: 1/,
  },
];

function withoutMarks(item: Item | undefined): Item | undefined {
  if (item === undefined) return undefined;
  const { unreadableSettled: _, ...others } = item;
  return others;
}
