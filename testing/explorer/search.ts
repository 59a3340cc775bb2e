/** Decides at every point where a schedule branches. */
export interface Guide {
  /**
   * @param options - the number of ways to continue; the first is the ordinary one
   * @param state - a digest of everything that determines how the schedule can continue
   * @param ordinary - the label of the ordinary way; if deviations are counted, it also distinguishes states
   * @param ways - what each way does, as `<actor>: <label>`; the search itself does not need it
   * @returns the way to take; -1 if this state was already explored by another path
   */
  choose(options: number, state: () => string, ordinary: string, ways?: () => readonly string[]): number;
}

/** The result of a search. */
export interface SearchReport {
  /** The number of schedules run, including those that reached a known state. */
  readonly schedules: number;
  /** The number of distinct states in which they branched. */
  readonly states: number;
}

/**
 * Runs every schedule, depth first: runs one, then returns to the last branch with an unexplored way, and runs the system again
 * from the start up to that branch and down the next way. Two schedules that reach the same state continue in the same way, so
 * the second stops there.
 *
 * @param run - runs one schedule and calls the guide at each branch
 * @param options.deviationsMax - the maximum number of deviations from the ordinary path in a schedule @default unlimited
 * @param options.onSchedule - called after each schedule; return `false` to end the search
 */
export async function searchSchedules<T>(
  run: (guide: Guide) => Promise<T>,
  options: {
    readonly deviationsMax?: number | undefined;
    readonly onSchedule: (result: T, choices: readonly number[]) => boolean;
  },
): Promise<SearchReport> {
  const { deviationsMax = Number.POSITIVE_INFINITY } = options;
  const known = new Map<string, number>(); // each state, with the number of deviations left when it was explored
  let tape: { chosen: number; readonly options: number }[] = [];
  let schedules = 0;

  for (;;) {
    let at = 0;
    let deviations = 0;
    const guide: Guide = {
      choose: (count, state, ordinary) => {
        let step = tape[at];
        if (step === undefined) {
          const key = deviationsMax === Number.POSITIVE_INFINITY ? state() : `${state()} ${ordinary}`;
          const left = deviationsMax - deviations;
          if ((known.get(key) ?? -1) >= left) return -1;
          known.set(key, left);
          step = { chosen: 0, options: count };
          tape.push(step);
        } else if (step.options !== count) {
          throw new Error(
            `The handler is not deterministic: an earlier run had ${step.options} ways to continue here, and this one has ${count}. Let it depend on its event and its table only, not on the time, chance or an earlier run.`,
          );
        }
        at += 1;
        if (step.chosen > 0) deviations += 1;
        return step.chosen;
      },
    };
    const result = await run(guide);
    schedules += 1;
    const continues = options.onSchedule(
      result,
      tape.map(({ chosen }) => chosen),
    );
    tape = nextTape(tape, deviationsMax);
    if (!continues || tape.length === 0) return { schedules, states: known.size };
  }
}

/** The choices of the next schedule: the last branch with an unexplored way takes that way. Empty if every way was explored. */
function nextTape(
  tape: readonly { readonly chosen: number; readonly options: number }[],
  deviationsMax: number,
): { chosen: number; readonly options: number }[] {
  for (let last = tape.length - 1; last >= 0; last -= 1) {
    const step = tape[last];
    if (step === undefined || step.chosen + 1 >= step.options) continue;
    const before = tape.slice(0, last);
    if (before.filter(({ chosen }) => chosen > 0).length + 1 > deviationsMax) continue;
    return [...before, { ...step, chosen: step.chosen + 1 }];
  }
  return [];
}

/** A guide that follows given choices, then the ordinary path. */
export function replay(choices: readonly number[]): Guide {
  let at = 0;
  return {
    choose: (options) => {
      const chosen = choices[at] ?? 0;
      at += 1;
      if (chosen < options) return chosen;
      throw new Error(
        `The seed does not fit this version of the code: way ${chosen} of ${options} at branch ${at}. Explore again without a seed.`,
      );
    },
  };
}
