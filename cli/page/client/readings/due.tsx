import { duration } from '../../../terminal/times.ts';
import { useNow } from '../frame/mailroom.ts';

/** A future time as a clock that counts down, and `due` from then on: nothing is lost when it passes. */
export function Due({ at }: { readonly at: number }) {
  const now = useNow();
  return (
    <span class="clock">{at <= now ? 'due' : `in ${duration(Math.ceil((at - now) / 1_000) * 1_000)}`}</span>
  );
}
