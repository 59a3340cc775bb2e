import { describe, expect, it } from 'vitest';
import { HOLES, nearestViolation } from './holes.ts';

describe('the explorer finds what breaks without this rule,', () => {
  it.for(HOLES)('$rule', async ({ scenario, deviations, found }) => {
    const violation = await nearestViolation(scenario, deviations);
    expect(violation?.what, `within ${deviations} deviations, nothing breaks without this rule`).toMatch(
      found,
    );
    expect(violation?.timeline.length).toBeGreaterThan(0);
  });
});
