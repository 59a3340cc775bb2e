import type { Clock } from '../../lambdas/runtime/base/clock.ts';
import type { RandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import type { ScheduledCall } from './call-outcomes.ts';
import type { Guide } from './search.ts';

/** A concurrent participant: a function, or an operator. */
export interface Actor {
  readonly name: string;
  /** Counts from 1; also the first byte of all its random bytes. */
  readonly index: number;
  /** Its own clock, which may run ahead or behind. */
  readonly clock: Clock;
  /** Its own random bytes; the first one identifies the actor. */
  readonly random: RandomBytes;
  /** Calls a port: the scheduler decides when the call takes effect, and how it ends. */
  call<T>(call: ScheduledCall<T>): Promise<T>;
  /** Runs an action of the environment, outside any function. It does not crash. */
  step<T>(label: string, perform: () => Promise<T> | T, how?: StepKind): Promise<T>;
  /** The number of the current invocation; 0 outside an invocation. */
  invocation(): number;
  /** Runs a function's invocation: it may crash at any of its calls, and is stopped when its time is over. */
  invoke<T>(timeoutMs: number, work: () => Promise<T>): Promise<Invocation<T>>;
  /** Crashes the process of the current invocation, as a handler may. Never resolves. */
  die(): Promise<never>;
  /** Sets the error of the actor's clock. @param ms - milliseconds ahead of the true time */
  skewBy(ms: number): void;
}

/** Options of a step of the environment. */
interface StepKind {
  /** Set if it touches only this actor's own state. @default false */
  readonly local?: boolean | undefined;
  /** Label of the outcome in which it does not happen. @default it always happens */
  readonly lost?: string | undefined;
}

/** The result of an invocation. */
export type Invocation<T> =
  | { readonly kind: 'returned'; readonly value: T }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'crashed' };

/** Limits on the faults in one schedule. */
export interface Budget {
  /** The number of crashes, failed calls, lost responses and stale reads. */
  readonly faults: number;
  /** The number of times that time may pass during a call, as when a process stalls or a lease runs out. */
  readonly stalls: number;
}

/** One line of a schedule's timeline. */
export interface TimelineStep {
  /** Milliseconds from the schedule's start. */
  readonly at: number;
  readonly actor: string;
  readonly what: string;
}

/** Callbacks from the scheduler into the world that it runs. */
export interface World {
  /**
   * A digest of all shared state that determines how the schedule can continue.
   *
   * @param left - the remaining faults: without any, no read is stale
   */
  state(left: Budget): string;
  /** Times at which something becomes possible, in epoch milliseconds: leases end, messages become visible. */
  deadlines(): readonly number[];
  /** Returns the rule that is violated at this moment, if any. */
  violation(): string | undefined;
}

/** Controls time and every call of the actors. */
export interface Scheduler {
  /** The true time in epoch milliseconds. */
  now(): number;
  actor(name: string): Actor;
  /** Runs all started work to its end. @returns `merged` if the guide has already explored the rest */
  run(world: World, guide: Guide, budget: Budget): Promise<'over' | 'merged' | 'violated'>;
  readonly timeline: readonly TimelineStep[];
  /** The steps at which an actor crashed in this schedule. */
  readonly crashes: readonly string[];
  /** The faults so far. */
  spent(): Budget;
  /** The rule that was violated, if any. */
  violated(): string | undefined;
}
