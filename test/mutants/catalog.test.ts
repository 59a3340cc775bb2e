import { describe, expect, test } from 'vitest';
import { MUTANTS } from './catalog.ts';
import { type Mutant, mutated, problemOf } from './mutant.ts';

describe('each mutant', () => {
  test('every mutant has a unique rule', () => {
    const rules = MUTANTS.map(({ rule }) => rule);
    expect(rules.filter((rule, i) => rules.indexOf(rule) !== i)).toEqual([]);
  });

  test('replaces a text that occurs exactly once, and names tests that exist', () => {
    expect(MUTANTS.length).toBeGreaterThan(100);
    expect(MUTANTS.map(problemOf).filter((problem) => problem !== undefined)).toEqual([]);
  });

  test('names tests that kill it, and a reason if it is equivalent', () => {
    expect(MUTANTS.filter(({ killers }) => killers.length === 0)).toEqual([]);
    const reasons = MUTANTS.flatMap(({ equivalent }) => equivalent ?? []);
    expect(reasons.filter((reason) => !/^[A-Z].+\.$/.test(reason))).toEqual([]);
  });
});

describe('a mutant', () => {
  const mutant = (change: Partial<Mutant>): Mutant => ({
    rule: 'a row is due when its lease has ended',
    file: 'lambdas/runtime/store/rows.ts',
    from: 'if (leaseUntil < now) return row;',
    to: 'return row;',
    killers: ['test/mutants/catalog.test.ts'],
    ...change,
  });

  test('matches its text across line breaks', () => {
    const source = 'a();\nif (leaseUntil < now)\n  return row;\nb();';
    expect(mutated(source, mutant({}))).toBe('a();\nreturn row;\nb();');
    expect(mutated(source, mutant({ to: '$& $1' }))).toBe('a();\n$& $1\nb();');
  });

  test.each([
    ['missing', 0, 'a();'],
    ['ambiguous', 2, 'if (leaseUntil < now) return row; if (leaseUntil < now) return row;'],
  ])('the error names a mutant whose text is %s', (_how, times, source) => {
    expect(() => mutated(source, mutant({}))).toThrow(
      `"a row is due when its lease has ended" replaces a text that occurs ${times} times in lambdas/runtime/store/rows.ts`,
    );
  });

  test.each([
    [
      'a file that does not exist',
      { file: 'lambdas/runtime/none.ts' },
      'lambdas/runtime/none.ts, which does not exist',
    ],
    [
      'a test that does not exist',
      { killers: ['test/none.test.ts'] },
      'test/none.test.ts, which does not exist',
    ],
    ['a text that is not there', {}, 'occurs 0 times'],
    ['a replacement that equals its text', { from: 'SCHEMA = 1', to: 'SCHEMA = 1' }, 'changes nothing'],
  ])('a catalog with %s is refused', (_what, change, problem) => {
    expect(problemOf(mutant(change))).toContain(problem);
  });
});
