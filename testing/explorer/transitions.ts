import type { Budget, World } from './actor.ts';
import { type CallOutcome, outcomesOf } from './call-outcomes.ts';
import { type ActorState, callKey, type Pending, type Schedule } from './schedule.ts';
import { thaw } from './scheduled-actor.ts';
import { digest } from './world-digest.ts';

/** One step by which a schedule can continue. */
export interface Transition {
  readonly actor: string;
  readonly label: string;
  readonly fault: number;
  readonly stall: number;
  readonly crash?: string | undefined;
  take(): Promise<void>;
}

/** A pause up to this length is ordinary, even while others are in the middle of a call. */
const SHORT_PAUSE_MS = 1_000;

/** The longest stall: no request takes effect half a day after it was sent. */
const STALL_MAX_MS = 12 * 3_600_000;

/** The number of upcoming deadlines that a stall may skip to. */
const STALL_TARGETS = 3;

/** All steps by which a schedule can continue from here, ordinary ones first. @param left - the remaining faults */
export function transitions(schedule: Schedule, world: World, left: Budget): Transition[] {
  const alone = schedule.pendings.find(({ call }) => call.local);
  const ordered =
    alone !== undefined
      ? [alone]
      : [
          ...schedule.pendings.filter((pending) => pending.actor === schedule.current),
          ...schedule.pendings.filter((pending) => pending.actor !== schedule.current),
        ];
  const outcomes = ordered.flatMap((pending) =>
    outcomesOf(pending.call, pending.invocation !== undefined, pending.resends).map((outcome) =>
      transition(schedule, pending, outcome),
    ),
  );
  const landings = schedule.late.map(
    (landing, index): Transition => ({
      actor: landing.actor.name,
      label: `${landing.label} takes effect late`,
      fault: 0,
      stall: 0,
      take: async () => {
        schedule.late = schedule.late.filter((_, other) => other !== index);
        await settle(landing.perform);
      },
    }),
  );
  const all = [
    ...outcomes.filter(({ fault }) => fault === 0),
    ...(alone === undefined ? [...landings, ...pauses(schedule, world)] : []),
    ...outcomes.filter(({ fault }) => fault > 0),
    ...(alone === undefined ? schedule.actors.flatMap((state) => thaws(schedule, state)) : []),
  ];
  return all.filter(({ fault, stall }) => fault <= left.faults && stall <= left.stalls);
}

function transition(schedule: Schedule, pending: Pending, outcome: CallOutcome): Transition {
  const { actor: state, call } = pending;
  const label = outcome.label === '' ? call.label : `${call.label} -> ${outcome.label}`;
  return {
    actor: state.name,
    label,
    fault: outcome.fault ? 1 : 0,
    stall: 0,
    crash: outcome.crash ? placeOf(`${state.name}: ${call.label} (${outcome.label})`) : undefined,
    take: async () => {
      schedule.pendings = schedule.pendings.filter((other) => other !== pending);
      schedule.current = state;
      if (outcome.later)
        schedule.late.push({ actor: state, of: callKey(pending), label: call.label, perform: call.perform });
      if (outcome.again) schedule.pendings.unshift({ ...pending, resends: pending.resends + 1 });
      const happened = outcome.effect ? await settle(outcome.perform ?? call.perform) : {};
      if (outcome.clockMs !== undefined) {
        state.skewMs += outcome.clockMs;
        schedule.see(state, 'its clock stepped back');
      }
      if (outcome.again) return;
      if (outcome.crash) {
        pending.invocation?.crash();
        return;
      }
      const answer = outcome.error === undefined ? happened : { error: outcome.error() };
      schedule.see(state, `${pending.number} ${digest(answer)}`);
      if (answer.error === undefined) pending.resolve(answer.value);
      else {
        schedule.note(state.name, `  ${errorText(answer.error)}`);
        pending.reject(answer.error);
      }
    },
  };
}

/** A function that is thawed by its next invocation, with what the last one left behind. */
function thaws(schedule: Schedule, state: ActorState): Transition[] {
  const { name, invocation, frozen } = state;
  if (invocation === undefined || frozen === undefined) return [];
  const calls = frozen.pendings.map(({ call }) => call.label);
  return [
    {
      actor: name,
      label: ['goes on with what its last invocation left', ...calls].join(': '),
      fault: 1,
      stall: 0,
      take: async () => {
        thaw(schedule, state, frozen);
        await schedule.time.passTo(schedule.time.now()); // timers whose time has passed fire at once
      },
    },
  ];
}

/** Time that passes while calls are in flight. */
function pauses({ time }: Schedule, world: World): Transition[] {
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
    .filter((at) => at > now + (short.length > 0 ? SHORT_PAUSE_MS : 0) && at <= now + STALL_MAX_MS)
    .sort((a, b) => a - b)
    .slice(0, STALL_TARGETS);
  return [...short, ...long.map((at) => pass(at, 1))];
}

async function settle(perform: () => Promise<unknown>): Promise<{ value?: unknown; error?: unknown }> {
  try {
    return { value: await perform() };
  } catch (error) {
    return { error };
  }
}

/** A call without the ids and numbers that differ between runs or workers. */
function placeOf(label: string): string {
  return label.replace(/~[0-9a-f]{4}|\d+/g, '#');
}

function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
