import { hash as oneShotHash } from 'node:crypto';
import type { TimelineStep } from './actor.ts';
import type { ScheduledCall } from './call-outcomes.ts';
import { createVirtualTime, type PendingSleep, type VirtualTime } from './virtual-time.ts';

/** The pending work of one schedule, and its history so far. */
export interface Schedule {
  /** The true time at the start, in epoch milliseconds. */
  readonly start: number;
  readonly time: VirtualTime<SleepOwner>;
  readonly actors: ActorState[];
  /** Calls in flight. */
  pendings: Pending[];
  /** Effects that have not happened yet although their call has returned. */
  late: Landing[];
  /** The actor that made the last step. */
  current: ActorState | undefined;
  readonly timeline: TimelineStep[];
  /** Adds to the history that an actor has observed. */
  see(actor: ActorState, what: string): void;
  /** Adds a line to the timeline. */
  note(name: string, what: string): void;
}

/** A call in flight. */
export interface Pending {
  readonly actor: ActorState;
  readonly invocation: InvocationState | undefined;
  readonly call: ScheduledCall<unknown>;
  /** The caller's history at the time of the call: two calls with the same history are the same. */
  readonly history: string;
  readonly number: number;
  readonly resends: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** The actor that sleeps. */
interface SleepOwner {
  readonly actor: ActorState;
  readonly invocation: InvocationState | undefined;
}

/** One invocation of a function, until it returns or is stopped. */
export interface InvocationState {
  readonly number: number;
  /** When the function is stopped, in true time. */
  readonly endsBy: number;
  readonly crash: () => void;
}

/** Work that an invocation left behind when it answered: frozen with its function, which a later invocation may thaw. */
export interface FrozenWork {
  /** A digest of everything that its actor had observed: with the same history it continues in the same way. */
  readonly history: string;
  readonly pendings: readonly Pending[];
  readonly sleepers: readonly PendingSleep<SleepOwner>[];
}

/** The schedule's record of an actor. */
export interface ActorState {
  readonly name: string;
  readonly index: number;
  skewMs: number;
  /** A digest of everything that the actor has observed: with the same history it continues in the same way. */
  history: string;
  draws: number;
  calls: number;
  invocations: number;
  invocation: InvocationState | undefined;
  frozen: FrozenWork | undefined;
}

/** An effect that happens late. */
interface Landing {
  readonly actor: ActorState;
  /** The call that it belongs to. */
  readonly of: string;
  readonly label: string;
  readonly perform: () => Promise<unknown>;
}

/** Creates a schedule without pending work. @param start - the true time at the start, in epoch milliseconds */
export function createSchedule(start: number): Schedule {
  const actors: ActorState[] = [];
  const timeline: TimelineStep[] = [];

  function see(actor: ActorState, what: string): void {
    actor.history = hash(`${actor.history}|${time.now()}|${what}`);
  }

  function note(name: string, what: string): void {
    timeline.push({ at: time.now() - start, actor: name, what });
  }

  const time = createVirtualTime<SleepOwner>(start, {
    woke: ({ actor }) => see(actor, 'woke'),
    nextStop: (before) => {
      const [actor] = actors
        .filter(({ invocation }) => invocation !== undefined && invocation.endsBy < before)
        .toSorted((a, b) => (a.invocation?.endsBy ?? 0) - (b.invocation?.endsBy ?? 0));
      const invocation = actor?.invocation;
      if (actor === undefined || invocation === undefined) return undefined;
      return {
        at: invocation.endsBy,
        stop: () => {
          note(actor.name, 'is stopped: timeout');
          invocation.crash();
        },
      };
    },
  });

  return { start, time, actors, pendings: [], late: [], current: undefined, timeline, see, note };
}

/** Identifies a call in flight. */
export function callKey({ actor, history, number, resends }: Pending): string {
  return `${actor.index} ${history} ${number} ${resends}`;
}

/** Identifies frozen work. */
export function frozenKey({ history, pendings, sleepers }: FrozenWork): string {
  return [history, ...pendings.map(callKey), ...sleepers.map(({ until }) => until)].join(' ');
}

/** Shortens a text to a digest. */
export function hash(text: string): string {
  return oneShotHash('md5', text, 'base64');
}
