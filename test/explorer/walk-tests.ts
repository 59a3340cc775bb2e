import { afterAll, describe, expect, test } from 'vitest';
import { exploreScenario, type Scenario, timelineText } from '../../testing/explorer/exploration.ts';
import type { Bounds } from './relay-scenarios.ts';
import { roundText, TEST_ROUNDS } from './rounds.ts';

/**
 * A test of each scenario in each round. The figures of all of them are printed at the end.
 *
 * @param promise - what holds in every schedule
 */
export function walkTests(promise: string, scenariosOf: (bounds: Bounds) => readonly Scenario[]): void {
  const crashPoints = new Set<string>();
  const total = { schedules: 0, violations: 0 };

  describe.each(TEST_ROUNDS.map((round) => [roundText(round), round] as const))(
    `${promise} (%s)`,
    (_text, round) => {
      test.for(scenariosOf(round))('$name', async (scenario) => {
        const report = await exploreScenario(scenario, { deviationsMax: round.deviations });
        for (const point of report.crashPoints) crashPoints.add(point);
        total.schedules += report.schedules;
        total.violations += report.violations.length;
        const found = report.violations.map(({ what, timeline }) => `${what}\n${timelineText(timeline)}`);
        expect(found).toEqual([]);
        expect(report.schedules).toBeGreaterThan(1);
      });
    },
  );

  afterAll(() => {
    expect(crashPoints.size).toBeGreaterThan(0);
    const { schedules, violations } = total;
    console.log(
      `${promise}: ${schedules} schedules, ${crashPoints.size} crash points, ${violations} violations`,
    );
  });
}
