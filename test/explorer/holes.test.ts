import { describe, expect, it } from 'vitest';
import {
  exploreScenario,
  type Scenario,
  timelineText,
  type Violation,
} from '../../lambdas/runtime/testing/explorer/exploration.ts';
import { INBOX_HOLES } from './inbox-holes.ts';
import { inboxScenarios } from './inbox-scenarios.ts';
import { type Hole, RELAY_HOLES } from './relay-holes.ts';
import { type Bounds, relayScenarios } from './relay-scenarios.ts';

/** The furthest that a schedule leaves the ordinary way before a hole shows. */
const DEVIATIONS_MAX = 4;

/** The schedule with the fewest deviations from the ordinary way that breaks a promise, and how many it took. */
async function nearestViolation(
  scenario: Scenario,
): Promise<{ violation: Violation; deviations: number } | undefined> {
  for (let deviations = 0; deviations <= DEVIATIONS_MAX; deviations += 1) {
    const [violation] = (await exploreScenario(scenario, { deviationsMax: deviations })).violations;
    if (violation !== undefined) return { violation, deviations };
  }
  return undefined;
}

function suite<T>(
  holes: readonly Hole<T>[],
  scenariosOf: (bounds: Bounds, tamper?: T) => readonly Scenario[],
): void {
  it.for(holes)('$rule', async ({ where, budget, tamper, found }) => {
    const named = ({ name }: Scenario) => name.includes(where);
    const scenario = scenariosOf({ actors: 2, budget }, tamper).find(named);
    expect(scenario, `there is a scenario "${where}"`).toBeDefined();
    if (scenario === undefined) return;
    const nearest = await nearestViolation(scenario);
    expect(nearest?.violation.what).toMatch(found);
    if (nearest === undefined) return;
    console.log(`${nearest.violation.what}\n${timelineText(nearest.violation.timeline)}`);
  });
}

describe('without this rule of the outbox the explorer finds what breaks:', () =>
  suite(RELAY_HOLES, relayScenarios));

describe('without this rule of the inbox the explorer finds what breaks:', () =>
  suite(INBOX_HOLES, inboxScenarios));
