import { describe, expect, it } from 'vitest';
import { exploreScenario, timelineText } from '../../lambdas/runtime/testing/explorer/exploration.ts';
import { batchScenarios } from './batch-scenarios.ts';

/** Batches and outages are long: schedules that leave the ordinary way twice are what `npm test` has time for. */
const DEVIATIONS_MAX = 2;

describe.each([
  ['one fault', { faults: 1, stalls: 0 }],
  ['one stall', { faults: 0, stalls: 1 }],
])('with two actors and %s, a batch, an outage and an incident kill nothing healthy:', (_what, budget) => {
  it.for(batchScenarios({ actors: 2, budget }))('$name', async (scenario) => {
    const { violations } = await exploreScenario(scenario, { deviationsMax: DEVIATIONS_MAX });
    expect(violations.map(({ what, timeline }) => `${what}\n${timelineText(timeline)}`)).toEqual([]);
  });
});
