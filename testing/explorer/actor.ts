import type { Clock } from '../../lambdas/runtime/clock.ts';
import type { RandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import type { ScheduledCall } from './call-outcomes.ts';
import type { Guide } from './search.ts';

/** One of those who act at the same time: a function, or an operator. */
export interface Actor {
  readonly name: string;
  /** From 1; the first byte of all its random bytes. */
  readonly index: number;
  /** Its own clock, which may be ahead or behind. */
  readonly clock: Clock;
  /** Its own random bytes: the first says whose they are. */
  readonly random: RandomBytes;
  /** A call to a port: the scheduler decides when it happens, and how it ends. */
  call<T>(call: ScheduledCall<T>): Promise<T>;
  /** What the world does around a function. It does not crash. */
  step<T>(label: string, perform: () => Promise<T> | T, how?: StepKind): Promise<T>;
  /** Counts the invocations; 0 while there is none. */
  invocation(): number;
  /** Runs a function's invocation: it may crash at any of its calls, and is stopped when its time is over. */
  invoke<T>(timeoutMs: number, work: () => Promise<T>): Promise<Invocation<T>>;
  /** Ends the process of its invocation at once, as its handler may do. It never resolves. */
  die(): Promise<never>;
  /** Puts the actor's clock right, or wrong. @param ms - ahead of the true time */
  skewBy(ms: number): void;
}

/** What kind of step the world makes. */
interface StepKind {
  /** Whether it touches only what this actor holds. @default false */
  readonly local?: boolean | undefined;
  /** How it is called when it does not happen. @default it always does */
  readonly lost?: string | undefined;
}

/** How an invocation ended. */
export type Invocation<T> =
  | { readonly kind: 'returned'; readonly value: T }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'crashed' };

/** How much may go wrong in one schedule. */
export interface Budget {
  /** Crashes, failed calls, lost answers and stale reads. */
  readonly faults: number;
  /** How often time passes while a call is under way: a process that stalls, a lease that runs out meanwhile. */
  readonly stalls: number;
}

/** One line of a schedule, as it happened. */
export interface TimelineStep {
  /** Milliseconds from the schedule's start. */
  readonly at: number;
  readonly actor: string;
  readonly what: string;
}

/** What the scheduler asks the world that it runs. */
export interface World {
  /**
   * Everything that is shared and decides how things go on, as one text.
   *
   * @param left - how much may still go wrong: without a fault left, no read is stale
   */
  state(left: Budget): string;
  /** Times at which something becomes possible, epoch milliseconds: leases that end, messages that show again. */
  deadlines(): readonly number[];
  /** What is wrong at this moment. */
  violation(): string | undefined;
}

/** Owns time and every call of the actors. */
export interface Scheduler {
  /** The true time, epoch milliseconds. */
  now(): number;
  actor(name: string): Actor;
  /** Runs everything that was begun until it is over. @returns `merged` when the guide knows the rest */
  run(world: World, guide: Guide, budget: Budget): Promise<'over' | 'merged' | 'violated'>;
  readonly timeline: readonly TimelineStep[];
  /** The places at which an actor crashed in this schedule. */
  readonly crashes: readonly string[];
  /** What went wrong so far. */
  spent(): Budget;
  /** What may never happen and did. */
  violated(): string | undefined;
}
