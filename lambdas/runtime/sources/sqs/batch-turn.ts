import { type ConsumerContext, receivedOf } from '../../consume/consumer-context.ts';
import type { Delivery } from '../../consume/delivery.ts';
import { putBack, reportOutage, type ShownAgain, waitToRunAlone } from '../../consume/message-outcome.ts';
import { turnOf } from '../../consume/turn.ts';

/** A message of a batch that becomes visible again without an attempt. */
export interface LaterDelivery {
  readonly delivery: Delivery;
  readonly outcome: ShownAgain;
}

/** The messages of a batch that run now, and those that are put back. */
export interface BatchTurn {
  readonly now: readonly Delivery[];
  readonly later: readonly LaterDelivery[];
}

/**
 * Returns true if a suspect gives way to the others of its batch: at every second receive, odd for half of the suspects and even for the
 * others, by their random message ids. So a suspect waits for one receive at a time, and a crowd of suspects with the same number of
 * receives, as a deployment that dies at every message leaves it, does not put a healthy message back until its receives are exhausted.
 */
function givesWay({ receives, message: { messageId } }: Delivery): boolean {
  return (receives + messageId.charCodeAt(messageId.length - 1)) % 2 === 0;
}

/**
 * Decides which messages of a batch run: all of them, unless one is a suspect, which must run alone ({@link turnOf}). Then either the
 * suspect or all others run, in turns ({@link givesWay}).
 */
export async function batchTurn(ctx: ConsumerContext, deliveries: readonly Delivery[]): Promise<BatchTurn> {
  if (deliveries.length <= 1) return { now: deliveries, later: [] };
  const suspects: Delivery[] = [];
  const others: Delivery[] = [];
  const later: LaterDelivery[] = [];
  await Promise.all(
    deliveries.map(async (delivery) => {
      try {
        const { alone } = await turnOf(ctx, delivery);
        (alone ? suspects : others).push(delivery);
      } catch (error) {
        later.push({ delivery, outcome: reportOutage(receivedOf(ctx, delivery), error) });
      }
    }),
  );
  // The suspect that has waited longest: any other choice would leave each one's wait unbounded.
  const [suspect, ...otherSuspects] = suspects.sort((a, b) => b.receives - a.receives);
  if (suspect === undefined) return { now: others, later };
  const wait = (delivery: Delivery): LaterDelivery => ({
    delivery,
    outcome: waitToRunAlone(receivedOf(ctx, delivery)),
  });
  if (others.length > 0 && givesWay(suspect))
    return { now: others, later: [...later, ...suspects.map(wait)] };
  const makeRoom = others.map((delivery): LaterDelivery => ({ delivery, outcome: putBack() }));
  return { now: [suspect], later: [...later, ...makeRoom, ...otherSuspects.map(wait)] };
}
