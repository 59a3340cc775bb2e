import { isEventId } from '../event-id.ts';
import type { Delivery } from './delivery.ts';
import type { Inbox } from './inbox.ts';

/**
 * The message of a batch that must run alone, because its last claims ended without a result; `undefined` when there is none.
 * Among several it is the one with the fewest such claims: what never gets a result must not keep the others waiting.
 *
 * Only a message that was received before can be one, so an ordinary batch costs no call. Where a row cannot be read, its
 * message is none: its own claim meets the same table.
 */
export async function soleSuspect(
  inbox: Pick<Inbox, 'suspicion'>,
  deliveries: readonly Delivery[],
): Promise<Delivery | undefined> {
  const candidates = deliveries.filter(({ receives, message }) => receives > 1 && isEventId(message.eventId));
  const suspicions = await Promise.all(
    candidates.map(async (delivery) => ({
      delivery,
      unfinished: await inbox.suspicion(delivery.message).catch(() => 0),
    })),
  );
  const suspects = suspicions.filter(({ unfinished }) => unfinished > 0);
  return suspects.sort((a, b) => a.unfinished - b.unfinished)[0]?.delivery;
}
