import { createHash } from 'node:crypto';
import type { Actor, Budget, Invocation, Scheduler, TimelineStep, World } from './actor.ts';
import { type Call, type Outcome, outcomesOf } from './call-outcomes.ts';
import { digest } from './digest.ts';
import { createVirtualTime } from './virtual-time.ts';

/** A pause no longer than this is ordinary, also while others are in the middle of a call. */
const SHORT_PAUSE_MS = 1_000;

/** How many of the next deadlines a stall may skip to. */
const STALL_TARGETS = 3;

/** After so many steps a schedule is going round in circles. */
const STEPS_MAX = 3_000;

interface Pending {
  readonly actor: ActorState;
  readonly invocation: InvocationState | undefined;
  readonly call: Call<unknown>;
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

interface InvocationState {
  readonly number: number;
  /** When the function is stopped, true time. */
  readonly endsBy: number;
  readonly crash: () => void;
}

interface ActorState {
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

interface Transition {
  readonly actor: string;
  readonly label: string;
  readonly fault: number;
  readonly stall: number;
  readonly crash?: string | undefined;
  take(): Promise<void>;
}

/** Makes a scheduler. @param start - the true time at the beginning, epoch milliseconds */
export function createScheduler(start: number): Scheduler {
  let current: ActorState | undefined;
  let pendings: Pending[] = [];
  let late: {
    readonly actor: ActorState;
    /** Which call it is. */
    readonly of: string;
    readonly label: string;
    readonly perform: () => Promise<unknown>;
  }[] = [];
  const actors: ActorState[] = [];
  const timeline: TimelineStep[] = [];
  const crashes: string[] = [];
  const spent = { faults: 0, stalls: 0 };
  let violation: string | undefined;
  const time = createVirtualTime<SleepOwner>(start, {
    woke: ({ actor: state }) => see(state, 'woke'),
    nextStop: (before) => {
      const [state] = actors
        .filter(({ invocation }) => invocation !== undefined && invocation.endsBy < before)
        .toSorted((a, b) => (a.invocation?.endsBy ?? 0) - (b.invocation?.endsBy ?? 0));
      const invocation = state?.invocation;
      if (state === undefined || invocation === undefined) return undefined;
      return {
        at: invocation.endsBy,
        stop: () => {
          note(state.name, 'is stopped: its time is over');
          invocation.crash();
        },
      };
    },
  });

  function actor(name: string): Actor {
    const state: ActorState = {
      name,
      index: actors.length + 1,
      skewMs: 0,
      history: '',
      draws: 0,
      calls: 0,
      invocations: 0,
      invocation: undefined,
    };
    actors.push(state);
    const call = <T>(made: Call<T>, invocation: InvocationState | undefined): Promise<T> =>
      new Promise<T>((resolve, reject) => {
        state.calls += 1;
        pendings.push({
          actor: state,
          invocation,
          call: made as Call<unknown>,
          history: state.history,
          number: state.calls,
          resends: 0,
          resolve: resolve as (value: unknown) => void,
          reject,
        });
      });
    return {
      name,
      index: state.index,
      clock: {
        now: () => time.now() + state.skewMs,
        sleep: (ms, signal) => time.sleep({ actor: state, invocation: state.invocation }, ms, signal),
      },
      random: (count) => {
        state.draws += 1;
        const bytes = Buffer.alloc(count, state.index);
        if (count >= 12) bytes.writeUInt16BE(state.draws, count - 3);
        return bytes;
      },
      call: (made) => call(made, state.invocation),
      step: (label, perform, { local, lost } = {}) =>
        call(
          {
            label,
            perform: async () => perform(),
            effect: false,
            local,
            crashes: false,
            failures: lost === undefined ? [] : [{ label: lost, perform: async () => undefined as never }],
          },
          undefined,
        ),
      invocation: () => state.invocation?.number ?? 0,
      invoke: (timeoutMs, work) => invoke(state, timeoutMs, work),
      skewBy: (ms) => {
        state.skewMs = ms;
      },
    };
  }

  function invoke<T>(state: ActorState, timeoutMs: number, work: () => Promise<T>): Promise<Invocation<T>> {
    return new Promise((resolve) => {
      const before = state.history;
      const end = (result: Invocation<T>) => {
        if (state.invocation !== invocation) return;
        // A function remembers nothing: what is left of an invocation is how it ended.
        state.history = before;
        see(state, digest(result));
        // What it left behind is frozen with its function.
        pendings = pendings.filter((pending) => pending.invocation !== invocation);
        time.forget((owner) => owner.invocation === invocation);
        state.invocation = undefined;
        resolve(result);
      };
      state.invocations += 1;
      const invocation: InvocationState = {
        number: state.invocations,
        endsBy: time.now() + timeoutMs,
        crash: () => end({ kind: 'crashed' }),
      };
      state.invocation = invocation;
      work().then(
        (value) => end({ kind: 'returned', value }),
        (error: unknown) => end({ kind: 'threw', error }),
      );
    });
  }

  function see(state: ActorState, what: string): void {
    state.history = hash(`${state.history}|${time.now()}|${what}`);
  }

  function note(name: string, what: string): void {
    timeline.push({ at: time.now() - start, actor: name, what });
  }

  /** One way in which one call can end. */
  function transition(pending: Pending, outcome: Outcome): Transition {
    const { actor: state, call } = pending;
    const label = outcome.label === '' ? call.label : `${call.label} -> ${outcome.label}`;
    return {
      actor: state.name,
      label,
      fault: outcome.fault ? 1 : 0,
      stall: 0,
      crash: outcome.crash ? placeOf(`${state.name}: ${call.label} (${outcome.label})`) : undefined,
      take: async () => {
        pendings = pendings.filter((other) => other !== pending);
        current = state;
        if (outcome.later)
          late.push({ actor: state, of: callKey(pending), label: call.label, perform: call.perform });
        if (outcome.again) pendings.unshift({ ...pending, resends: pending.resends + 1 });
        const happened = outcome.effect ? await settle(outcome.perform ?? call.perform) : {};
        if (outcome.clockMs !== undefined) {
          state.skewMs += outcome.clockMs;
          see(state, 'its clock stepped back');
        }
        if (outcome.again) return;
        if (outcome.crash) {
          pending.invocation?.crash();
          return;
        }
        const answer = outcome.error === undefined ? happened : { error: outcome.error() };
        see(state, `${pending.number} ${digest(answer)}`);
        if (answer.error === undefined) pending.resolve(answer.value);
        else {
          note(state.name, `  ${errorText(answer.error)}`);
          pending.reject(answer.error);
        }
      },
    };
  }

  function transitions(world: World, left: Budget): Transition[] {
    const alone = pendings.find(({ call }) => call.local);
    const ordered =
      alone !== undefined
        ? [alone]
        : [
            ...pendings.filter((pending) => pending.actor === current),
            ...pendings.filter((pending) => pending.actor !== current),
          ];
    const outcomes = ordered.flatMap((pending) =>
      outcomesOf(pending.call, pending.invocation !== undefined, pending.resends).map((outcome) =>
        transition(pending, outcome),
      ),
    );
    const landings = late.map(
      (landing, index): Transition => ({
        actor: landing.actor.name,
        label: `${landing.label} takes effect late`,
        fault: 0,
        stall: 0,
        take: async () => {
          late = late.filter((_, other) => other !== index);
          await settle(landing.perform);
        },
      }),
    );
    const all = [
      ...outcomes.filter(({ fault }) => fault === 0),
      ...(alone === undefined ? [...landings, ...pauses(world)] : []),
      ...outcomes.filter(({ fault }) => fault > 0),
    ];
    return all.filter(({ fault, stall }) => fault <= left.faults && stall <= left.stalls);
  }

  /** Time that passes while calls are under way. */
  function pauses(world: World): Transition[] {
    const now = time.now();
    const wakes = time.wakes();
    const soon = Math.min(...wakes);
    const pass = (target: number, stall: number): Transition => ({
      actor: 'time',
      label: `${target - now} ms pass`,
      fault: 0,
      stall,
      take: () => time.passTo(target),
    });
    const short = soon <= now + SHORT_PAUSE_MS ? [pass(soon, 0)] : [];
    const long = [...new Set([...wakes, ...world.deadlines()])]
      .filter((at) => at > now + (short.length > 0 ? SHORT_PAUSE_MS : 0))
      .sort((a, b) => a - b)
      .slice(0, STALL_TARGETS);
    return [...short, ...long.map((at) => pass(at, 1))];
  }

  function stateKey(world: World, left: Budget): string {
    const parts = [
      time.now() - start,
      left.faults,
      left.stalls,
      ...actors.map(({ history, skewMs, draws }) => `${history}:${skewMs}:${draws}`),
      ...late.map(({ of }) => of),
      ...pendings.map(callKey),
      ...time.wakes().toSorted((a, b) => a - b),
      world.state(),
    ];
    return hash(parts.join('\n'));
  }

  return {
    now: time.now,
    actor,
    timeline,
    crashes,
    spent: () => ({ ...spent }),
    violated: () => violation,
    run: async (world, guide, budget) => {
      for (let steps = 0; steps < STEPS_MAX; steps += 1) {
        await time.quiet();
        violation ??= world.violation();
        if (violation !== undefined) {
          for (const { actor: state, call } of pendings) note(state.name, `is about to ${call.label}`);
          return 'violated';
        }
        if (pendings.length === 0 && late.length === 0) {
          const wakes = time.wakes();
          if (wakes.length === 0) return 'over';
          await time.passTo(Math.min(...wakes));
          continue;
        }
        const left = {
          faults: Math.max(0, budget.faults - spent.faults),
          stalls: Math.max(0, budget.stalls - spent.stalls),
        };
        const ways = transitions(world, left);
        const chosen =
          ways.length === 1
            ? 0
            : guide.choose(ways.length, () => stateKey(world, left), ways[0]?.label ?? '');
        const way = ways[chosen];
        if (way === undefined) return 'merged';
        spent.faults += way.fault;
        spent.stalls += way.stall;
        if (way.crash !== undefined) crashes.push(way.crash);
        note(way.actor, way.label);
        await way.take();
      }
      violation = `It does not come to rest: ${STEPS_MAX} steps, and still something to do`;
      return 'violated';
    },
  };
}

async function settle(perform: () => Promise<unknown>): Promise<{ value?: unknown; error?: unknown }> {
  try {
    return { value: await perform() };
  } catch (error) {
    return { error };
  }
}

/** A call without what differs from one time, or one worker, to the next: ids and numbers. */
function placeOf(label: string): string {
  return label.replace(/~[0-9a-f]{4}|\d+/g, '#');
}

/** Stands for a call that is under way. */
function callKey({ actor, history, number, resends }: Pending): string {
  return `${actor.index} ${history} ${number} ${resends}`;
}

function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function hash(text: string): string {
  return createHash('md5').update(text).digest('base64');
}
