import { describe, expect, it } from 'vitest';
import { exploreScenario, timelineText } from '../../lambdas/runtime/testing/explorer/exploration.ts';
import { inboxScenarios } from './inbox-scenarios.ts';
import { ONE_FAULT, ONE_STALL } from './rounds.ts';

describe('the inbox, in every order of two actors and with anything that may go wrong once, doubles nothing:', () => {
  it.for(inboxScenarios(ONE_FAULT))('$name', async (scenario) => {
    const { violations, crashPoints } = await exploreScenario(scenario);
    expect(violations.map(({ what, timeline }) => `${what}\n${timelineText(timeline)}`)).toEqual([]);
    expect(crashPoints.size).toBeGreaterThan(0);
  });
});

describe('the inbox, while time passes in the middle of a call, doubles nothing:', () => {
  it.for(inboxScenarios(ONE_STALL))('$name', async (scenario) => {
    const { violations } = await exploreScenario(scenario, { deviationsMax: ONE_STALL.deviations });
    expect(violations.map(({ what, timeline }) => `${what}\n${timelineText(timeline)}`)).toEqual([]);
  });
});
