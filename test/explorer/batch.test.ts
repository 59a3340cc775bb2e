import { describe, expect, it } from 'vitest';
import { exploreScenario, timelineText } from '../../lambdas/runtime/testing/explorer/exploration.ts';
import { batchScenarios } from './batch-scenarios.ts';
import { ONE_FAULT } from './rounds.ts';

describe('a batch, an outage, an incident, in every order of two actors and with one fault, kill nothing healthy:', () => {
  it.for(batchScenarios(ONE_FAULT))('$name', async (scenario) => {
    const { violations, crashPoints } = await exploreScenario(scenario);
    expect(violations.map(({ what, timeline }) => `${what}\n${timelineText(timeline)}`)).toEqual([]);
    expect(crashPoints.size).toBeGreaterThan(0);
  });
});
