import type { Clock } from '../../lambdas/runtime/base/clock.ts';
import type { ProducerConfig } from '../../lambdas/runtime/base/config.ts';
import type { EventDraft } from '../../lambdas/runtime/events/event.ts';
import { createOutbox } from '../../lambdas/runtime/outbox/outbox.ts';
import type { StoredOutboxRow } from '../../lambdas/runtime/store/stored-envelope.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';

/** The outbox rows of some events, each with its own id, the same in every schedule. */
export async function committedEvents(
  deps: { readonly config: ProducerConfig; readonly table: Table; readonly clock: Clock },
  events: readonly EventDraft[],
): Promise<StoredOutboxRow[]> {
  let minted = 0xee;
  const outbox = createOutbox({ ...deps, random: (count) => Buffer.alloc(count, minted) });
  const rows: StoredOutboxRow[] = [];
  for (const event of events) {
    for (const { Put } of await outbox.entries([event])) rows.push(Put.Item);
    minted -= 1;
  }
  return rows;
}
