import { describe, expect, test } from 'vitest';
import { type CaptureBounds, type ExploredRetention, exploreCapture } from './capture-model.ts';

/** A clause of the retention, and its replacement. */
type Clause = readonly [clause: string, replacement: string];

/** A retention, clauses of which can be taken away for a check. */
interface HoledRetention extends ExploredRetention {
  readonly without: <T>(changes: readonly Clause[], check: () => Promise<T>) => Promise<T>;
}

const BOUNDS: CaptureBounds = { events: 1, stops: 2, losses: 1, until: 7 };

/** Explores the retention of captured events. @param holes - rules, each with the clauses that keep it */
export function describeRetention(
  retention: HoledRetention,
  holes: readonly (readonly [rule: string, changes: readonly Clause[]])[],
): void {
  describe('the retention of captured events', () => {
    test('deletes no event before it was delivered, whatever order a producer, a connector and time have', async () => {
      const { states, violation } = await retention.without([], () => exploreCapture(retention, BOUNDS));
      expect(violation).toBeUndefined();
      expect(states).toBeGreaterThan(5_000);
    });

    test.each(holes)('finds a hole: %s', async (_rule, changes) => {
      const { violation } = await retention.without(changes, () => exploreCapture(retention, BOUNDS));
      expect(violation).toMatch(/beat/);
    });
  });
}
