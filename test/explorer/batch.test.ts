import { describe, expect, it } from 'vitest';
import { exploreScenario, timelineText } from '../../testing/explorer/exploration.ts';
import { batchScenarios } from './batch-scenarios.ts';
import { LONG_ROUNDS, roundText } from './rounds.ts';

describe.each(LONG_ROUNDS.map((round) => [roundText(round), round] as const))(
  'with %s, a batch, an outage and an incident kill nothing healthy:',
  (_what, round) => {
    it.for(batchScenarios(round))('$name', async (scenario) => {
      const { violations } = await exploreScenario(scenario, { deviationsMax: round.deviations });
      expect(violations.map(({ what, timeline }) => `${what}\n${timelineText(timeline)}`)).toEqual([]);
    });
  },
);
