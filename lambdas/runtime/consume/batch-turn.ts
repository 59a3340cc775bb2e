import { isEventId } from '../store/event-id.ts';
import { isSuspect } from '../store/inbox-claim.ts';
import type { ConsumerContext } from './consumer-context.ts';
import type { Delivery } from './delivery.ts';
import { putBack, reportOutage, type ShownAgain, waitToRunAlone } from './message-outcome.ts';

/** A message of a batch that is shown again without being tried. */
interface Later {
  readonly delivery: Delivery;
  readonly outcome: ShownAgain;
}

/** Which messages of a batch run now, and which are put back. */
export interface BatchTurn {
  readonly now: readonly Delivery[];
  readonly later: readonly Later[];
}

/**
 * Decides who runs. Everybody, unless a message of the batch must run alone because its last claims ended without a result: a
 * *suspect*. Then either the suspect runs, or all others do, by turns: each receive of the suspect decides the other way, so
 * that neither can keep the other waiting for long.
 *
 * Only a message that was received before can be a suspect, so an ordinary batch costs no call.
 */
export async function batchTurn(ctx: ConsumerContext, deliveries: readonly Delivery[]): Promise<BatchTurn> {
  if (deliveries.length <= 1) return { now: deliveries, later: [] };
  const suspects: Delivery[] = [];
  const others: Delivery[] = [];
  const later: Later[] = [];
  await Promise.all(
    deliveries.map(async (delivery) => {
      try {
        const known = delivery.receives > 1 && isEventId(delivery.message.eventId);
        const list = known && (await isSuspect(ctx.inbox, delivery.message)) ? suspects : others;
        list.push(delivery);
      } catch (error) {
        later.push({ delivery, outcome: reportOutage({ ...ctx, delivery }, error) });
      }
    }),
  );
  // The one that has waited longest: with another choice, the wait of each would have no bound.
  const [suspect, ...otherSuspects] = suspects.sort((a, b) => b.receives - a.receives);
  if (suspect === undefined) return { now: others, later };
  const wait = (delivery: Delivery): Later => ({ delivery, outcome: waitToRunAlone({ ...ctx, delivery }) });
  if (others.length > 0 && suspect.receives % 2 === 0)
    return { now: others, later: [...later, ...suspects.map(wait)] };
  const makeRoom = others.map((delivery): Later => ({ delivery, outcome: putBack() }));
  return { now: [suspect], later: [...later, ...makeRoom, ...otherSuspects.map(wait)] };
}
