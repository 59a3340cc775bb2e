import { type Guide, searchSchedules } from '../../testing/explorer/search.ts';

/** Makes a call of a program: it waits for its turn, and the program may crash before or after it. */
export type Turn = <T>(call: () => Promise<T>) => Promise<T>;

/** @param onCrash - takes what ends the connections of a program that crashes */
type Program = (turn: Turn, onCrash: (act: () => void) => void) => Promise<void>;

/** One system, in its first state. */
export interface CrashedSystem {
  /** The programs that run at the same time. One that crashes starts again. */
  readonly programs: readonly Program[];
  /** Called after every program has ended. It throws if a rule is broken. */
  readonly check: () => Promise<void>;
}

/** A program that waits for the turn of a call, or that has ended. */
interface Running {
  readonly ended: boolean;
  /** Makes the call, and lets the program go on to its next one. */
  goOn(): Promise<Running>;
  /** Makes the call or not, and never goes on. */
  crash(makesCall: boolean): Promise<void>;
}

/**
 * Runs programs in every order of their calls, with a crash before or after each of them.
 *
 * @param crashes - the most crashes in one schedule
 * @returns the number of schedules
 */
export async function crashSchedules(start: () => Promise<CrashedSystem>, crashes: number): Promise<number> {
  let states = 0;
  // Each state is explored: a system does not tell whether it has been in it before.
  const pick = (guide: Guide, ways: number) => {
    states += 1;
    return guide.choose(ways, () => String(states), '');
  };
  const run = (guide: Guide) => runSchedule(start, (ways) => pick(guide, ways), crashes);
  const { schedules } = await searchSchedules(run, { onSchedule: () => true });
  return schedules;
}

async function runSchedule(
  start: () => Promise<CrashedSystem>,
  pick: (ways: number) => number,
  crashes: number,
): Promise<void> {
  const { programs, check } = await start();
  const running = await Promise.all(programs.map(begin));
  let left = crashes;
  for (;;) {
    const waiting = programs.flatMap((program, at) => {
      const chosen = running[at];
      return chosen === undefined || chosen.ended ? [] : [{ program, chosen, at }];
    });
    if (waiting.length === 0) return check();
    const kinds =
      left > 0 ? (['goes on', 'crashes before', 'crashes after'] as const) : (['goes on'] as const);
    const ways = waiting.flatMap((one) => kinds.map((kind) => ({ ...one, kind })));
    const way = ways[ways.length === 1 ? 0 : pick(ways.length)];
    if (way === undefined) throw new Error('A choice leads nowhere.');
    const { chosen, program } = way;
    if (way.kind === 'goes on') {
      running[way.at] = await chosen.goOn();
    } else {
      left -= 1;
      await chosen.crash(way.kind === 'crashes after');
      running[way.at] = await begin(program);
    }
  }
}

/** Runs a program to its first call. */
function begin(program: Program): Promise<Running> {
  let end = () => {};
  let arrive: (running: Running) => void = () => {};
  let fail: (error: unknown) => void = () => {};
  const arrival = () =>
    new Promise<Running>((resolve, reject) => {
      [arrive, fail] = [resolve, reject];
    });
  const turn: Turn = (call) =>
    new Promise((resolve, reject) => {
      arrive({
        ended: false,
        goOn: () => {
          const next = arrival();
          call().then(resolve, reject);
          return next;
        },
        crash: async (makesCall) => {
          if (makesCall) await call().catch(() => {});
          end();
        },
      });
    });
  const first = arrival();
  const ended: Running = { ended: true, goOn: async () => ended, crash: async () => {} };
  const onCrash = (act: () => void) => {
    end = act;
  };
  program(turn, onCrash).then(
    () => arrive(ended),
    (error) => fail(error),
  );
  return first;
}
