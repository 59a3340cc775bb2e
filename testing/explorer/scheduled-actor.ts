import type { Actor, Invocation } from './actor.ts';
import type { ScheduledCall } from './call-outcomes.ts';
import type { ActorState, FrozenWork, InvocationState, Schedule } from './schedule.ts';
import { digest } from './world-digest.ts';

/** Adds an actor to a schedule. */
export function addActor(schedule: Schedule, name: string): Actor {
  const state: ActorState = {
    name,
    index: schedule.actors.length + 1,
    skewMs: 0,
    history: '',
    draws: 0,
    calls: 0,
    invocations: 0,
    invocation: undefined,
    frozen: undefined,
  };
  schedule.actors.push(state);
  const call = <T>(made: ScheduledCall<T>, invocation: InvocationState | undefined): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      state.calls += 1;
      schedule.pendings.push({
        actor: state,
        invocation,
        call: made as ScheduledCall<unknown>,
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
      now: () => schedule.time.now() + state.skewMs,
      sleep: (ms, signal) => schedule.time.sleep({ actor: state, invocation: state.invocation }, ms, signal),
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
    invoke: (timeoutMs, work) => invoke(schedule, state, timeoutMs, work),
    die: () => {
      state.invocation?.crash();
      return new Promise<never>(() => {});
    },
    skewBy: (ms) => {
      state.skewMs = ms;
    },
  };
}

/** Runs one invocation: it ends when its function returns, throws or crashes. */
function invoke<T>(
  schedule: Schedule,
  state: ActorState,
  timeoutMs: number,
  work: () => Promise<T>,
): Promise<Invocation<T>> {
  return new Promise((resolve) => {
    const before = state.history;
    const end = (result: Invocation<T>) => {
      if (state.invocation !== invocation) return;
      // Pending work of the invocation is frozen with its function, and ends with its process.
      const pendings = schedule.pendings.filter((pending) => pending.invocation === invocation);
      schedule.pendings = schedule.pendings.filter((pending) => pending.invocation !== invocation);
      const sleepers = schedule.time.freeze((owner) => owner.invocation === invocation);
      const leaves = result.kind !== 'crashed' && pendings.length + sleepers.length > 0;
      state.frozen = leaves ? { history: state.history, pendings, sleepers } : undefined;
      // A function keeps no other state: only the way in which an invocation ended remains.
      state.history = before;
      schedule.see(state, digest(result));
      state.invocation = undefined;
      resolve(result);
    };
    state.invocations += 1;
    const invocation: InvocationState = {
      number: state.invocations,
      endsBy: schedule.time.now() + timeoutMs,
      crash: () => end({ kind: 'crashed' }),
    };
    state.invocation = invocation;
    work().then(
      (value) => end({ kind: 'returned', value }),
      (error: unknown) => end({ kind: 'threw', error }),
    );
  });
}

/** Lets the work that an earlier invocation left behind go on in the current one, whose function is the same. */
export function thaw(
  schedule: Schedule,
  state: ActorState,
  { history, pendings, sleepers }: FrozenWork,
): void {
  const { invocation } = state;
  state.frozen = undefined;
  schedule.see(state, `thawed ${history}`);
  schedule.time.thaw({ actor: state, invocation }, sleepers);
  for (const pending of pendings) {
    schedule.pendings.push({ ...pending, invocation });
    pending.call.thawed?.();
  }
}
