/** Decides at every point where a schedule branches. */
export interface Guide {
  /**
   * @param options - how many ways there are to go on; the first is the ordinary one
   * @param state - everything that decides how the schedule can go on, as one text
   * @param ordinary - which way is the ordinary one: where deviations are counted, it tells states apart too
   * @returns which way to go; -1 when this state was explored before, by another way
   */
  choose(options: number, state: () => string, ordinary: string): number;
}

/** What a search walked. */
export interface SearchReport {
  /** How many schedules were run, those that met a known state included. */
  readonly schedules: number;
  /** How many different states they branched in. */
  readonly states: number;
}

/**
 * Walks every schedule, depth first: runs one, then goes back to the last branching that has a way left, and runs
 * the system again from its beginning up to there and down the next way. Two schedules that come to the same state
 * go on alike, so the second stops there.
 *
 * @param run - runs one schedule, asking the guide at each branching
 * @param options.deviationsMax - how often a schedule may leave the ordinary way @default any number of times
 * @param options.onSchedule - told after each; `false` ends the search
 */
export async function searchSchedules<T>(
  run: (guide: Guide) => Promise<T>,
  options: {
    readonly deviationsMax?: number | undefined;
    readonly onSchedule: (result: T, choices: readonly number[]) => boolean;
  },
): Promise<SearchReport> {
  const { deviationsMax = Number.POSITIVE_INFINITY } = options;
  const known = new Map<string, number>(); // a state, and how many deviations were left when it was explored
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
            `The system is not deterministic: ${count} ways to go on where there were ${step.options}`,
          );
        }
        at += 1;
        if (step.chosen > 0) deviations += 1;
        return step.chosen;
      },
    };
    const result = await run(guide);
    schedules += 1;
    const goesOn = options.onSchedule(
      result,
      tape.map(({ chosen }) => chosen),
    );
    tape = nextTape(tape, deviationsMax);
    if (!goesOn || tape.length === 0) return { schedules, states: known.size };
  }
}

/** The tape of the next schedule: the last branching with a way left takes it. Empty when there is none. */
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

/** A guide that goes a way that is known, and the ordinary way after its end. */
export function replay(choices: readonly number[]): Guide {
  let at = 0;
  return {
    choose: (options) => {
      const chosen = choices[at] ?? 0;
      at += 1;
      if (chosen < options) return chosen;
      throw new Error(`This schedule is of another version: way ${chosen} of ${options} at branching ${at}`);
    },
  };
}
