import type { Budget, Scheduler, TimelineStep, World } from './actor.ts';
import { createScheduler } from './scheduler.ts';
import { type Guide, replay, searchSchedules } from './search.ts';

/** A system whose schedules are explored. */
export interface Scenario {
  readonly name: string;
  /** Limits on the faults in one schedule. */
  readonly budget: Budget;
  /** Sets the system up from scratch and starts everything that acts in it. */
  begin(scheduler: Scheduler): Promise<ExploredWorld>;
}

/** A system ready to run. */
export interface ExploredWorld extends World {
  /** Starts the work that lets the system settle at the end, without further faults or time limits. */
  settle(scheduler: Scheduler): void;
  /** Returns a problem in the settled state, if any. */
  verdict(spent: Budget): string | undefined;
}

/** A schedule that violates a guarantee. */
export interface Violation {
  readonly scenario: string;
  readonly what: string;
  /** Seed that replays this schedule. */
  readonly seed: string;
  readonly timeline: readonly TimelineStep[];
}

/** The result of an exploration. */
export interface ExplorationReport {
  readonly schedules: number;
  readonly states: number;
  /** The distinct steps at which an actor crashed. */
  readonly crashPoints: ReadonlySet<string>;
  readonly violations: readonly Violation[];
}

/** Limits of an exploration. */
export interface ExplorationOptions {
  /** Stops after this many violations. @default 1 */
  readonly violationsMax?: number | undefined;
  /** Stops after this many schedules. @default all */
  readonly schedulesMax?: number | undefined;
  /** The maximum number of deviations from the ordinary path in one schedule. @default unlimited */
  readonly deviationsMax?: number | undefined;
  /** Receives the number of schedules run so far, from time to time. */
  readonly onProgress?: ((schedules: number) => void) | undefined;
}

/** The start time of every schedule: in the middle of a minute. */
export const START = Date.UTC(2026, 0, 15, 12, 0, 20);

const NOTHING: Budget = { faults: 0, stalls: 0 };

interface ScheduleRun {
  readonly scheduler: Scheduler;
  readonly what: string | undefined;
}

/** Runs every schedule of a scenario within its budget. */
export async function exploreScenario(
  scenario: Scenario,
  options: ExplorationOptions = {},
): Promise<ExplorationReport> {
  const { violationsMax = 1, schedulesMax = Number.POSITIVE_INFINITY, onProgress } = options;
  const violations: Violation[] = [];
  const crashPoints = new Set<string>();
  let count = 0;
  const { schedules, states } = await searchSchedules((guide) => runSchedule(scenario, guide), {
    deviationsMax: options.deviationsMax,
    onSchedule: ({ scheduler, what }, choices) => {
      count += 1;
      for (const crash of scheduler.crashes) crashPoints.add(crash);
      if (what !== undefined) violations.push(violationOf(scenario, what, choices, scheduler));
      if (count % 1_000 === 0) onProgress?.(count);
      return violations.length < violationsMax && count < schedulesMax;
    },
  });
  return { schedules, states, crashPoints, violations };
}

/** Runs the one schedule of a seed. @returns its violation, if any, and its timeline */
export async function replaySchedule(
  scenario: Scenario,
  seed: string,
): Promise<{ readonly what: string | undefined; readonly timeline: readonly TimelineStep[] }> {
  const { scheduler, what } = await runSchedule(scenario, replay(choicesOf(seed)));
  return { what, timeline: scheduler.timeline };
}

async function runSchedule(scenario: Scenario, guide: Guide): Promise<ScheduleRun> {
  const scheduler = createScheduler(START);
  const stage = await scenario.begin(scheduler);
  const end = await scheduler.run(stage, guide, scenario.budget);
  if (end === 'merged') return { scheduler, what: undefined };
  if (end === 'over') {
    const spent = scheduler.spent();
    stage.settle(scheduler);
    const rest = await scheduler.run(stage, replay([]), NOTHING);
    if (rest === 'over') return { scheduler, what: stage.verdict(spent) };
  }
  return { scheduler, what: scheduler.violated() };
}

function violationOf(
  scenario: Scenario,
  what: string,
  choices: readonly number[],
  scheduler: Scheduler,
): Violation {
  return { scenario: scenario.name, what, seed: seedOf(choices), timeline: scheduler.timeline };
}

/** Encodes the choices as text, without ordinary choices at the end. */
function seedOf(choices: readonly number[]): string {
  const last = choices.findLastIndex((choice) => choice > 0);
  return choices.slice(0, last + 1).join('.') || '0';
}

function choicesOf(seed: string): number[] {
  return seed.split('.').map(Number);
}

/** Formats a schedule, one step per line: time, actor, action. */
export function timelineText(timeline: readonly TimelineStep[]): string {
  const width = Math.max(...timeline.map(({ actor }) => actor.length));
  return timeline
    .map(
      ({ at, actor, what }) => `${(at / 1_000).toFixed(3).padStart(10)} s  ${actor.padEnd(width)}  ${what}`,
    )
    .join('\n');
}
