import { describe, expect, it } from 'vitest';
import { exploreScenario, timelineText } from '../../testing/explorer/exploration.ts';
import { inboxScenarios } from './inbox-scenarios.ts';
import { ONE_STALL } from './rounds.ts';

describe('the inbox, while time passes in the middle of a call, doubles nothing:', () => {
  it.for(inboxScenarios(ONE_STALL))('$name', async (scenario) => {
    const { violations, schedules } = await exploreScenario(scenario, {
      deviationsMax: ONE_STALL.deviations,
    });
    expect(violations.map(({ what, timeline }) => `${what}\n${timelineText(timeline)}`)).toEqual([]);
    expect(schedules).toBeGreaterThan(1);
  });
});
