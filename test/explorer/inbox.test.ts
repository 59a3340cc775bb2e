import { describe, expect, it } from 'vitest';
import { exploreScenario, timelineText } from '../../lambdas/runtime/testing/explorer/exploration.ts';
import { inboxScenarios } from './inbox-scenarios.ts';
import { ONE_FAULT } from './rounds.ts';

describe('the inbox, in every order of two actors and with anything that may go wrong once, doubles nothing:', () => {
  it.for(inboxScenarios(ONE_FAULT))('$name', async (scenario) => {
    const { violations, crashPoints } = await exploreScenario(scenario);
    expect(violations.map(({ what, timeline }) => `${what}\n${timelineText(timeline)}`)).toEqual([]);
    expect(crashPoints.size).toBeGreaterThan(0);
  });
});
