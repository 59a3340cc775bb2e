import { describe, expect, it } from 'vitest';
import { exploreScenario, timelineText } from '../../testing/explorer/exploration.ts';
import { resendScenarios } from './resend-scenarios.ts';
import { LONG_ROUNDS, roundText } from './rounds.ts';

describe.each(LONG_ROUNDS.map((round) => [roundText(round), round] as const))(
  'with %s, of an event and those in its place one runs:',
  (_what, round) => {
    it.for(resendScenarios(round))('$name', async (scenario) => {
      const { violations } = await exploreScenario(scenario, { deviationsMax: round.deviations });
      expect(violations.map(({ what, timeline }) => `${what}\n${timelineText(timeline)}`)).toEqual([]);
    });
  },
);
