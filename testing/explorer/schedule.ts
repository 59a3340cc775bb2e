import { createHash } from 'node:crypto';
import type { TimelineStep } from './actor.ts';
import type { ScheduledCall } from './call-outcomes.ts';
import { createVirtualTime, type VirtualTime } from './virtual-time.ts';

/** Everything that is under way in one schedule, and what has happened so far. */
export interface Schedule {
  /** The true time at the beginning, epoch milliseconds. */
  readonly start: number;
  readonly time: VirtualTime<SleepOwner>;
  readonly actors: ActorState[];
  /** Calls that are under way. */
  pendings: Pending[];
  /** Effects whose call is over for its caller, and that have not happened yet. */
  late: Landing[];
  /** Whoever made the last step. */
  current: ActorState | undefined;
  readonly timeline: TimelineStep[];
  /** Adds to what an actor has seen. */
  see(actor: ActorState, what: string): void;
  /** Adds a line to the timeline. */
  note(name: string, what: string): void;
}

/** A call that is under way. */
export interface Pending {
  readonly actor: ActorState;
  readonly invocation: InvocationState | undefined;
  readonly call: ScheduledCall<unknown>;
  /** The caller's history when it was made: two calls with the same history are the same. */
  readonly history: string;
  readonly number: number;
  readonly resends: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Whose sleep it is. */
interface SleepOwner {
  readonly actor: ActorState;
  readonly invocation: InvocationState | undefined;
}

/** One invocation of a function, until it returns or is stopped. */
export interface InvocationState {
  readonly number: number;
  /** When the function is stopped, true time. */
  readonly endsBy: number;
  readonly crash: () => void;
}

/** One of those who act, as the schedule knows it. */
export interface ActorState {
  readonly name: string;
  readonly index: number;
  skewMs: number;
  /** Stands for everything that it has seen: with the same history it goes on alike. */
  history: string;
  draws: number;
  calls: number;
  invocations: number;
  invocation: InvocationState | undefined;
}

/** An effect that comes late. */
interface Landing {
  readonly actor: ActorState;
  /** Which call it is. */
  readonly of: string;
  readonly label: string;
  readonly perform: () => Promise<unknown>;
}

/** Makes a schedule in which nothing is under way. @param start - the true time at the beginning, epoch milliseconds */
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
          note(actor.name, 'is stopped: its time is over');
          invocation.crash();
        },
      };
    },
  });

  return { start, time, actors, pendings: [], late: [], current: undefined, timeline, see, note };
}

/** Stands for a call that is under way. */
export function callKey({ actor, history, number, resends }: Pending): string {
  return `${actor.index} ${history} ${number} ${resends}`;
}

/** A long text as a short one: equal for equal texts. */
export function hash(text: string): string {
  return createHash('md5').update(text).digest('base64');
}
