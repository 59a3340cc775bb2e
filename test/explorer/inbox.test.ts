import { describe, expect, it } from 'vitest';
import { exploreScenario, timelineText } from '../../testing/explorer/exploration.ts';
import { inboxScenarios } from './inbox-scenarios.ts';
import { ONE_FAULT } from './rounds.ts';

describe('the inbox, with two actors and one fault, doubles nothing:', () => {
  it.for(inboxScenarios(ONE_FAULT))('$name', async (scenario) => {
    const { violations, crashPoints } = await exploreScenario(scenario, {
      deviationsMax: ONE_FAULT.deviations,
    });
    expect(violations.map(({ what, timeline }) => `${what}\n${timelineText(timeline)}`)).toEqual([]);
    expect(crashPoints.size).toBeGreaterThan(0);
  });
});
