import type { Scenario } from '../../testing/explorer/exploration.ts';
import { batchHandlerScenarios } from './batch-handler-scenarios.ts';
import { batchScenarios } from './batch-scenarios.ts';
import { bridgeScenarios } from './bridge-scenarios.ts';
import { changedScenarios } from './changed-scenarios.ts';
import { eventScenarios } from './event-scenarios.ts';
import { inboxScenarios } from './inbox-scenarios.ts';
import { limitScenarios } from './limit-scenarios.ts';
import { orderScenarios } from './order-scenarios.ts';
import { outageScenarios } from './outage-scenarios.ts';
import { payloadScenarios } from './payload-scenarios.ts';
import { redriveScenarios } from './redrive-scenarios.ts';
import { rejectionScenarios } from './rejection-scenarios.ts';
import { type Bounds, relayScenarios } from './relay-scenarios.ts';
import { resendScenarios } from './resend-scenarios.ts';
import { retentionScenarios } from './retention-scenarios.ts';
import { scheduledScenarios } from './scheduled-scenarios.ts';
import { staleScenarios } from './stale-scenarios.ts';
import { thawScenarios } from './thaw-scenarios.ts';
import { uniqueScenarios } from './unique-scenarios.ts';
import { unreadableScenarios } from './unreadable-scenarios.ts';
import { versionScenarios } from './version-scenarios.ts';

/** One walk through every setting, within bounds. */
export interface Round extends Bounds {
  /** How often a schedule may leave the ordinary way; absent: any number of times. */
  readonly deviations?: number | undefined;
}

/**
 * How often schedules leave the ordinary way in `npm test`, and in `npm run test:nightly`, which walks the same scenarios further.
 *
 * @param nightly - absent: any number of times
 */
export function deviations(daily: number, nightly?: number): number | undefined {
  return process.env.EXPLORE_NIGHTLY === undefined ? daily : nightly;
}

/**
 * What the tests walk: two actors, and anything that can go wrong, once; and two actors, while time passes once during a call, so
 * that a lease runs out or a function is stopped. Nightly with one other choice before or after it.
 */
export const TEST_ROUNDS: readonly Round[] = [
  { actors: 2, budget: { faults: 1, stalls: 0 }, deviations: deviations(1, 2) },
  { actors: 2, budget: { faults: 0, stalls: 1 }, deviations: deviations(1, 2) },
];

/**
 * What `npm run explore` walks. Every schedule of every scenario, whatever it deviates, takes hours:
 * `npm run explore -- --actors 2 --faults 1 --stalls 0` walks them. Three actors with two faults take a night as well.
 */
export const ROUNDS: readonly Round[] = [
  { actors: 2, budget: { faults: 1, stalls: 0 }, deviations: 3 },
  { actors: 2, budget: { faults: 0, stalls: 1 }, deviations: 3 },
  { actors: 2, budget: { faults: 1, stalls: 1 }, deviations: 2 },
  { actors: 3, budget: { faults: 1, stalls: 1 }, deviations: 1 },
];

/** Every scenario within some bounds. */
export function scenariosOf(bounds: Bounds): Scenario[] {
  return [
    ...relayScenarios(bounds),
    ...scheduledScenarios(bounds),
    ...uniqueScenarios(bounds),
    ...changedScenarios(bounds),
    ...inboxScenarios(bounds),
    ...batchScenarios(bounds),
    ...batchHandlerScenarios(bounds),
    ...outageScenarios(bounds),
    ...retentionScenarios(bounds),
    ...versionScenarios(bounds),
    ...eventScenarios(bounds),
    ...thawScenarios(bounds),
    ...redriveScenarios(bounds),
    ...resendScenarios(bounds),
    ...unreadableScenarios(bounds),
    ...rejectionScenarios(bounds),
    ...orderScenarios(bounds),
    ...limitScenarios(bounds),
    ...staleScenarios(bounds),
    ...payloadScenarios(bounds),
    ...bridgeScenarios(bounds),
  ];
}

/** A round in words. */
export function roundText({ actors, budget: { faults, stalls }, deviations }: Round): string {
  const within = deviations === undefined ? 'all schedules' : `up to ${deviations} deviations`;
  return `${actors} actors, ${faults} faults, ${stalls} stalls, ${within}`;
}
