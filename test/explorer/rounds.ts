import type { Scenario } from '../../lambdas/runtime/testing/explorer/exploration.ts';
import { batchScenarios } from './batch-scenarios.ts';
import { inboxScenarios } from './inbox-scenarios.ts';
import { type Bounds, relayScenarios } from './relay-scenarios.ts';

/** One walk through every setting, within bounds. */
export interface Round extends Bounds {
  /** How often a schedule may leave the ordinary way; absent: any number of times. */
  readonly deviations?: number | undefined;
}

/** Every order of two actors' calls, with anything that may go wrong once. */
export const ONE_FAULT: Round = { actors: 2, budget: { faults: 1, stalls: 0 } };

/** Two actors, while time passes once in the middle of a call: a lease runs out, a function is stopped. */
export const ONE_STALL: Round = { actors: 2, budget: { faults: 0, stalls: 1 }, deviations: 3 };

/** What `npm run explore` walks. */
export const ROUNDS: readonly Round[] = [
  ONE_FAULT,
  { actors: 2, budget: { faults: 0, stalls: 1 } },
  { actors: 3, budget: { faults: 2, stalls: 1 }, deviations: 2 },
];

/** Every scenario within some bounds. */
export function scenariosOf(bounds: Bounds): Scenario[] {
  return [...relayScenarios(bounds), ...inboxScenarios(bounds), ...batchScenarios(bounds)];
}

/** A round in words. */
export function roundText({ actors, budget: { faults, stalls }, deviations }: Round): string {
  const within = deviations === undefined ? 'all schedules' : `up to ${deviations} deviations`;
  return `${actors} actors, ${faults} faults, ${stalls} stalls, ${within}`;
}
