import { expect, test } from 'vitest';
import { runEnd } from '../../../demo/run-end.ts';
import { DAY_MS } from '../../../lambdas/runtime/base/units.ts';

const running = { isAtRest: false, quietMs: 0, newDeadLetters: 0, faults: 'none' } as const;

test('a run is settled once it is at rest', () => {
  expect(runEnd(running)).toBeUndefined();
  expect(runEnd({ ...running, isAtRest: true })).toBe('settled');
});

test.each(['none', 'repaired'] as const)(
  'a run with %s faults is stuck after 150 seconds without progress',
  (faults) => {
    expect(runEnd({ ...running, faults, quietMs: 150_000 })).toBeUndefined();
    expect(runEnd({ ...running, faults, quietMs: 150_001 })).toBe('stuck');
  },
);

test('a run with a fault that is not repaired neither settles nor counts as stuck', () => {
  expect(runEnd({ ...running, faults: 'broken', isAtRest: true })).toBeUndefined();
  expect(runEnd({ ...running, faults: 'broken', quietMs: DAY_MS })).toBeUndefined();
});

test('a run with repaired faults waits for the redrive of its dead letters', () => {
  const repaired = { ...running, faults: 'repaired', quietMs: DAY_MS } as const;
  expect(runEnd({ ...repaired, newDeadLetters: 1 })).toBeUndefined();
  expect(runEnd({ ...repaired, isAtRest: true, newDeadLetters: 1 })).toBeUndefined();
  expect(runEnd({ ...repaired, isAtRest: true })).toBe('settled');
});
