import { describe, expect, it } from 'vitest';
import { HOLES, nearestViolation } from './holes.ts';

describe('the explorer finds what breaks without this rule,', () => {
  it.for(HOLES)('$rule', async ({ scenario, found }) => {
    const violation = await nearestViolation(scenario);
    expect(violation?.what).toMatch(found);
    expect(violation?.timeline.length).toBeGreaterThan(0);
  });
});
