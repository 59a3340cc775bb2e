import { describe, expect, it } from 'vitest';
import { exploreScenario, timelineText } from '../../testing/explorer/exploration.ts';
import { eventScenarios } from './event-scenarios.ts';
import { outageScenarios } from './outage-scenarios.ts';
import { retentionScenarios } from './retention-scenarios.ts';
import { LONG_ROUNDS, roundText } from './rounds.ts';
import { thawScenarios } from './thaw-scenarios.ts';
import { versionScenarios } from './version-scenarios.ts';

describe.each(LONG_ROUNDS.map((round) => [roundText(round), round] as const))(
  'with %s, a consumer doubles nothing and kills nothing healthy:',
  (_what, round) => {
    it.for([
      ...outageScenarios(round),
      ...retentionScenarios(round),
      ...versionScenarios(round),
      ...eventScenarios(round),
      ...thawScenarios(round),
    ])('$name', async (scenario) => {
      const { violations } = await exploreScenario(scenario, { deviationsMax: round.deviations });
      expect(violations.map(({ what, timeline }) => `${what}\n${timelineText(timeline)}`)).toEqual([]);
    });
  },
);
