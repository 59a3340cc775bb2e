import pMap from 'p-map';
import { outboxKeyOf } from '../../store/event-id.ts';
import { type Note, type OperationDeps, recordOperation } from '../../store/operation-record.ts';
import { markResent } from '../../store/outbox-decisions.ts';
import { isUnreadable, readOutboxRow } from '../../store/stored-rows.ts';
import { depthOf } from '../dead-letters.ts';
import { deliveredEvent } from '../delivered-event.ts';
import type { ConsumerEntry, Directory } from '../directory.ts';
import type { Queues } from '../queues.ts';
import type { MissingEvent } from './audit-ledger.ts';

/** Dependencies of {@link repairMissing}. */
export interface RepairDeps extends OperationDeps {
  readonly directory: Directory;
  readonly queues: Pick<Queues, 'depth' | 'send'>;
}

/** The results of a repair. */
export interface Repair {
  /** The events that were sent to their consumers. */
  readonly sent: readonly MissingEvent[];
  /** The events that were not sent, with the reasons. */
  readonly unsent: readonly (MissingEvent & { readonly why: string })[];
}

/** The maximum number of concurrent sends. */
const SENDS_AT_ONCE = 8;

/**
 * Sends each missing event to the queue of only the consumer that never received it, in the form in which the bus would have
 * delivered it. The repair is recorded first. Sending an event twice is harmless: the consumer's inbox absorbs the duplicate.
 *
 * @param missing - the findings of an audit: `report.missing`
 *
 * @example
 * ```ts
 * const { sent } = await repairMissing({ table, directory, queues }, report.missing, { by: 'ada', reason: 'the rule had drifted' });
 * ```
 */
export async function repairMissing(
  deps: RepairDeps,
  missing: readonly MissingEvent[],
  note: Note,
): Promise<Repair> {
  const sent: MissingEvent[] = [];
  const unsent: (MissingEvent & { why: string })[] = [];
  for (const consumer of deps.directory.consumers) {
    const events = missing.filter((event) => event.consumer === consumer.name);
    const [first] = events;
    if (first === undefined) continue;
    const depth = await depthOf(deps.queues, consumer.queue);
    if (depth === undefined) {
      unsent.push(
        ...events.map((event) => ({
          ...event,
          why: 'its queue does not exist: see "To deploy a stack again" in docs/operating.md',
        })),
      );
      continue;
    }
    const span = `${first.eventId} to ${events.at(-1)?.eventId}`;
    const subject = `${consumer.name}: ${events.length} missing events, ${span}`;
    await recordOperation(deps, { ...note, command: 'audit --repair', subject });
    const [, , , region = '', account = ''] = depth.arn.split(':');
    await pMap(
      events,
      async (event) => {
        const problem = await sendAgain(deps, consumer, event, { region, account });
        if (problem === undefined) sent.push(event);
        else unsent.push({ ...event, why: problem });
      },
      { concurrency: SENDS_AT_ONCE },
    );
  }
  return { sent, unsent };
}

async function sendAgain(
  deps: RepairDeps,
  consumer: ConsumerEntry,
  { eventId, publishedAt }: MissingEvent,
  place: { readonly region: string; readonly account: string },
): Promise<string | undefined> {
  const row = readOutboxRow(await deps.table.get(outboxKeyOf(eventId), { consistent: true }));
  if (isUnreadable(row)) return `its outbox row cannot be read: ${row.unreadable}`;
  if (row === undefined || (await markResent(deps, eventId)) === undefined)
    return 'its outbox row has expired, and its payload with it';
  await deps.queues.send(consumer.queue, deliveredEvent(row, { ...place, time: publishedAt }));
  return undefined;
}
