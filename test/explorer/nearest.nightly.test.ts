import { describe, expect, it } from 'vitest';
import { exploreScenario } from '../../testing/explorer/exploration.ts';
import { HOLES } from './holes.ts';

const further = HOLES.filter(({ deviations }) => deviations > 0);

describe('fewer deviations than are recorded beside this rule do not show that it is missed,', () => {
  it.for(further)('$rule', async ({ scenario, deviations }) => {
    const { violations } = await exploreScenario(scenario, { deviationsMax: deviations - 1 });
    expect(violations).toEqual([]);
  });
});
