import { duration, time } from '../../../terminal/times.ts';
import { roughly, urgencyOf } from './format.ts';
import { useNow } from './mailroom.ts';
import { State } from './state.tsx';

/** A past time as an age, e.g. `3 min ago`; the time itself is its title. `?` for an unknown one. */
export function Ago({ at }: { readonly at: number | null }) {
  const now = useNow();
  if (at === null) return '?';
  return (
    <time dateTime={stamp(at)} title={time(at)}>
      {roughly(now - at)} ago
    </time>
  );
}

/** The time of a permanent deletion as a clock that counts down, with its urgency (see {@link urgencyOf}). */
export function Expiry({ at }: { readonly at: number | null }) {
  const now = useNow();
  if (at === null) return <span>never</span>;
  const leftMs = at - now;
  const text = (
    <time dateTime={stamp(at)} title={time(at)}>
      {leftMs > 0 ? `in ${duration(leftMs)}` : 'now'}
    </time>
  );
  const urgency = urgencyOf(at, now);
  return urgency === 'ok' ? text : <State is={urgency}>{text}</State>;
}

/** A future time as a clock that counts down, and `due` from then on: nothing is lost when it passes. */
export function Due({ at }: { readonly at: number }) {
  const now = useNow();
  return (
    <span class="clock">{at <= now ? 'due' : `in ${duration(Math.ceil((at - now) / 1_000) * 1_000)}`}</span>
  );
}

/** A time in UTC. */
export function At({ at }: { readonly at: number }) {
  return <time dateTime={stamp(at)}>{time(at)}</time>;
}

function stamp(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}
