import { expect, test } from 'vitest';
import { MUTANTS } from './catalog.ts';
import { type Mutant, mutated, problemOf } from './mutant.ts';

test('every mutant has a unique rule', () => {
  const rules = MUTANTS.map(({ rule }) => rule);
  expect(rules.filter((rule, i) => rules.indexOf(rule) !== i)).toEqual([]);
});

test('the catalog has at most 545 mutants, and each replaces a text that occurs exactly once, and names tests that exist', () => {
  expect(MUTANTS.length).toBeGreaterThan(100);
  expect(MUTANTS.length, 'one for each rule').toBeLessThanOrEqual(545);
  expect(MUTANTS.map(problemOf).filter((problem) => problem !== undefined)).toEqual([]);
  expect(MUTANTS.filter(({ killers }) => killers.length === 0)).toEqual([]);
});

const mutant = (change: Partial<Mutant>): Mutant => ({
  rule: 'a row is due when its lease has ended',
  file: 'lambdas/runtime/store/outbox-row.ts',
  from: 'if (leaseUntil < now) return row;',
  to: 'return row;',
  killers: ['test/mutants/catalog.test.ts'],
  ...change,
});

test('a mutant matches its text across line breaks', () => {
  const source = 'a();\nif (leaseUntil < now)\n  return row;\nb();';
  expect(mutated(source, mutant({}))).toBe('a();\nreturn row;\nb();');
  expect(mutated(source, mutant({ to: '$& $1' }))).toBe('a();\n$& $1\nb();');
});

test.each([
  ['a missing file', { file: 'lambdas/runtime/none.ts' }, 'lambdas/runtime/none.ts, which does not exist'],
  ['a missing test', { killers: ['test/none.test.ts'] }, 'test/none.test.ts, which does not exist'],
  ['a text that is not there', {}, 'occurs 0 times'],
  ['a text that is there twice', { from: 'export const' }, /"a row is due .*" .* occurs \d\d? times in/],
  [
    'a replacement that equals its text',
    { from: 'OutboxRow extends Key', to: 'OutboxRow extends Key' },
    'changes nothing',
  ],
])('a catalog with %s is refused', (_what, change, problem) => {
  expect(problemOf(mutant(change))).toMatch(problem);
});
