import { type Clock, systemClock } from '../../lambdas/runtime/clock.ts';

/**
 * A clock that keeps AWS's time, whatever the clock of this machine says. It is never ahead of AWS: what is compared with it
 * (a lease that has passed) is over for certain.
 *
 * The time is that of the `Date` headers of AWS's answers. A header's time is past when the answer arrives, and it counts
 * whole seconds; so AWS's time now is at least the header's plus the time since the answer arrived, and at most the header's
 * plus one second plus the time since the request was sent. Elapsed time is measured by the machine's steady timer, which
 * cannot be set. Every answer narrows both bounds, and `now` is the lower one.
 */
export interface AwsClock extends Clock {
  /** Whether an answer has carried a time yet. Until then `now` is the machine's. */
  isKnown(): boolean;
  /** How far the machine's clock is ahead of AWS's at least, milliseconds; negative when it is behind; 0 when it may be right. */
  machineAheadMs(): number;
  /** The steady timer, milliseconds: when a request is sent. */
  steadyMs(): number;
  /** Learns from an answer. @param sentMs - when its request was sent, by the steady timer */
  learn(date: string | undefined, sentMs: number): void;
}

/** The resolution of a `Date` header. */
const HEADER_MS = 1_000;

/** How far the clock is behind AWS at most, an answer's way included: a range that ends now has to reach so much further. */
export const BEHIND_MAX_MS = 2_000;

/** Makes the clock. It knows nothing until it learns from an answer. */
export function createAwsClock(
  machine: Clock = systemClock,
  steadyMs: () => number = () => performance.now(),
): AwsClock {
  // Of AWS's time less the steady timer's.
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

/** A client of the AWS SDK, as far as its answers can be listened to. */
interface Client {
  readonly middlewareStack: {
    add(
      middleware: (next: Next) => Next,
      options: { readonly step: 'deserialize'; readonly priority: 'low'; readonly name: string },
    ): void;
  };
}

/** Lets a clock learn from every answer that a client gets, refusals too. @returns the client */
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
  // Next to the handler: further out a refusal is an error already.
  client.middlewareStack.add(listen, { step: 'deserialize', priority: 'low', name: 'awsClock' });
  return client;
}
