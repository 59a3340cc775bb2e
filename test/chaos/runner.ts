import { randomBytes } from 'node:crypto';
import { errorMessage } from '../../lambdas/runtime/base/errors.ts';
import { createCleanup } from './cleanup.ts';
import type { OrderSystem } from './order-system.ts';
import type { Counts, Outcome, Scenario } from './scenario.ts';
import { DEFAULT_SETTINGS, type Settings } from './settings.ts';
import { createStage } from './stage.ts';

/** How long a scenario may take, which takes one or two minutes on a laptop: only one that hangs runs into it. */
const SCENARIO_MAX_MS = 1_200_000;

/** What {@link runScenario} needs. */
export interface RunDeps {
  readonly system: OrderSystem;
  readonly print: (line: string) => void;
  /** @default {@link DEFAULT_SETTINGS} */
  readonly settings?: Settings | undefined;
}

/**
 * Runs one scenario and puts back what it broke, however it ends.
 *
 * @returns how it ended; it never throws
 */
export async function runScenario(
  scenario: Scenario,
  { system, print, settings = DEFAULT_SETTINGS }: RunDeps,
): Promise<Outcome> {
  const { name, limitMs = SCENARIO_MAX_MS } = scenario;
  const cleanup = createCleanup();
  const problems: string[] = [];
  const timeIsUp = new AbortController();
  const startedAt = Date.now();
  print(`\n${name}: ${scenario.title}`);
  let counts: Counts | undefined;
  try {
    cleanup.add(() => system.proxy.clear());
    const stage = createStage({
      system,
      settings,
      runId: `${name}-${randomBytes(4).toString('hex')}`,
      cleanup,
      endsAt: startedAt + limitMs,
      signal: timeIsUp.signal,
      print: (line) => {
        if (!timeIsUp.signal.aborted) print(line);
      },
      onProblem: (text) => {
        if (!timeIsUp.signal.aborted) problems.push(text);
      },
    });
    counts = await within(limitMs, scenario.run(stage));
  } catch (error) {
    problems.push(errorMessage(error));
  } finally {
    timeIsUp.abort(new Error('The time of the scenario is up'));
    problems.push(...(await cleanup.run()).map((error) => `Not put back: ${errorMessage(error)}`));
  }
  const isWhole = counts !== undefined && counts.lost === 0 && counts.duplicated === 0;
  const outcome: Outcome = {
    name,
    passed: isWhole && problems.length === 0,
    lost: counts?.lost,
    duplicated: counts?.duplicated,
    seconds: Math.round((Date.now() - startedAt) / 100) / 10,
    problems,
  };
  print(verdict(outcome));
  return outcome;
}

function verdict({ passed, lost, duplicated, seconds, problems }: Outcome): string {
  const counted = lost === undefined ? 'not counted' : `${lost} lost, ${duplicated} duplicated`;
  const lines = [`  => ${passed ? 'passed' : 'FAILED'}: ${counted}, ${seconds} s`];
  return [...lines, ...problems.map((problem) => `     ${problem}`)].join('\n');
}

async function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`It was not over after ${limitMs / 1_000} s`)), limitMs);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}
