import { passesOver, SKIP_LOOKS } from '../../inbox/inbox-transitions.ts';
import type { RowTransition } from '../../inbox/row-transition.ts';
import {
  type GatedPlace,
  type LastRaise,
  type LastSequence,
  Overtaken,
  passedOver,
} from '../last-sequence.ts';

/**
 * Writes a rejection, and passes over its number in the same transaction, if the rejections of its consumer skip.
 *
 * @param write - throws {@link Overtaken} if the number has changed, and has then written nothing
 * @throws {@link Overtaken} if the number does not stop changing
 */
export async function passingOver<R>(
  place: GatedPlace | undefined,
  rejection: RowTransition,
  lastSequence: (key: string) => Promise<LastSequence>,
  write: (raise?: LastRaise) => Promise<R>,
): Promise<R> {
  if (!passesOver(place, rejection)) return write();
  for (let look = 1; ; look += 1) {
    const seen = await lastSequence(place.order.key);
    try {
      return await write(passedOver(place.order, seen));
    } catch (error) {
      if (!(error instanceof Overtaken) || look === SKIP_LOOKS) throw error;
    }
  }
}
