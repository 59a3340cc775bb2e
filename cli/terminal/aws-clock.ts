import { type Clock, systemClock } from '../../lambdas/runtime/base/clock.ts';
import { duration } from './times.ts';

/**
 * A clock that keeps AWS's time, independent of this machine's clock. It is never ahead of AWS, so a lease that has expired by
 * this clock has expired.
 *
 * Its source is the `Date` header of AWS's responses. The header has whole seconds and is in the past when the response
 * arrives. So AWS's time is at least the header's plus the time since the response arrived, and at most the header's plus one
 * second plus the time since the request was sent. The machine's monotonic timer measures elapsed time. Every response
 * narrows both bounds; `now` is the lower one.
 */
export interface AwsClock extends Clock {
  /** True once a response has carried a time. Until then `now` is the machine's. */
  isKnown(): boolean;
  /** The least by which the machine's clock is ahead of AWS's, milliseconds; negative if it is behind, 0 if it may be right. */
  machineAheadMs(): number;
  /** The monotonic timer, milliseconds. */
  steadyMs(): number;
  /** Learns from a response. @param sentMs - when its request was sent, by the monotonic timer */
  learn(date: string | undefined, sentMs: number): void;
}

/** The resolution of a `Date` header. */
const HEADER_MS = 1_000;

/** The most by which the clock is behind AWS, network included: a range that ends now must extend this much further. */
export const BEHIND_MAX_MS = 2_000;

/** A larger difference of the machine's clock is reported: no time that AWS reports is more exact. */
const CLOCK_OFF_MS = 2_000;

/** Describes a machine clock that is wrong: `at least 1 min ahead of AWS's`; `undefined` if it may be right. */
export function clockError(machineAheadMs: number): string | undefined {
  const offMs = Math.abs(machineAheadMs);
  if (offMs <= CLOCK_OFF_MS) return undefined;
  return `at least ${duration(offMs)} ${machineAheadMs > 0 ? 'ahead of' : 'behind'} AWS's`;
}

/** Creates the clock. It uses the machine's time until it learns from a response. */
export function createAwsClock(
  machine: Clock = systemClock,
  steadyMs: () => number = () => performance.now(),
): AwsClock {
  // Bounds of the difference between AWS's time and the monotonic timer.
  let atLeast = Number.NEGATIVE_INFINITY;
  let atMost = Number.POSITIVE_INFINITY;
  const isKnown = () => Number.isFinite(atLeast);
  return {
    isKnown,
    steadyMs,
    now: () => (isKnown() ? Math.floor(steadyMs() + atLeast) : machine.now()),
    sleep: machine.sleep,
    learn: (date, sentMs) => {
      const dateMs = Date.parse(date ?? '');
      if (Number.isNaN(dateMs)) return;
      atLeast = Math.max(atLeast, dateMs - steadyMs());
      atMost = Math.min(atMost, dateMs + HEADER_MS - sentMs);
    },
    machineAheadMs: () => {
      if (!isKnown()) return 0;
      const difference = machine.now() - steadyMs();
      return Math.max(difference - atMost, 0) + Math.min(difference - atLeast, 0);
    },
  };
}

type Next = (args: { readonly request: unknown; readonly input: object }) => Promise<{
  readonly response: unknown;
}>;

/** The part of an AWS SDK client that gives access to its responses. */
interface Client {
  readonly middlewareStack: {
    add(
      middleware: (next: Next) => Next,
      options: { readonly step: 'deserialize'; readonly priority: 'low'; readonly name: string },
    ): void;
  };
}

/** Lets a clock learn from every response of a client, errors included. @returns the client */
export function listenTo<C extends Client>(client: C, clock: AwsClock): C {
  const listen =
    (next: Next): Next =>
    async (args) => {
      const sentMs = clock.steadyMs();
      const answer = await next(args);
      const { headers } = answer.response as { readonly headers?: Readonly<Record<string, string>> };
      clock.learn(headers?.date, sentMs);
      return answer;
    };
  // Next to the handler: further out, an error response is already thrown.
  client.middlewareStack.add(listen, { step: 'deserialize', priority: 'low', name: 'awsClock' });
  return client;
}
