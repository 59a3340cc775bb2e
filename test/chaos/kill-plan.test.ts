import { describe, expect, it } from 'vitest';
import { drawKills } from './kill-plan.ts';

const LOTS = { victims: { payments: 120, inventory: 60 }, each: 3 };

function drawn(seed: number) {
  return [...drawKills({ seed, ...LOTS })];
}

describe('the lots of who is killed, and when', () => {
  it('are the same for the same seed, and others for another', () => {
    expect(drawn(1)).toEqual(drawn(1));
    expect(drawn(2)).not.toEqual(drawn(1));
  });

  it('name the requested number of different calls per function, in the order in which they occur', () => {
    for (let seed = 0; seed < 200; seed += 1) {
      for (const [victim, kills] of drawn(seed)) {
        const calls = kills.map(({ atCall }) => atCall);
        expect(new Set(calls).size).toBe(3);
        expect(calls).toEqual(calls.toSorted((a, b) => a - b));
        expect(calls[0]).toBeGreaterThanOrEqual(1);
        expect(calls[2]).toBeLessThanOrEqual(LOTS.victims[victim]);
      }
    }
  });

  it('reach every call and both moments', () => {
    const kills = Array.from({ length: 200 }, (_, seed) =>
      drawKills({ seed, victims: { relay: 5 }, each: 2 }),
    )
      .flatMap((plans) => [...plans.values()])
      .flat();
    const reached = new Set(kills.map(({ atCall, moment }) => `${moment} ${atCall}`));
    expect(reached.size).toBe(10);
  });

  it('are at most one for each call', () => {
    const plans = drawKills({ seed: 1, victims: { relay: 2 }, each: 5 });
    expect(plans.get('relay')?.map(({ atCall }) => atCall)).toEqual([1, 2]);
  });
});
