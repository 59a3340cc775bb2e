import { describe, expect, test } from 'vitest';
import { MUTANTS } from './catalogue.ts';
import { type Mutant, mutated, problemOf } from './mutant.ts';

describe('each mutant', () => {
  test('takes away a rule of its own', () => {
    const rules = MUTANTS.map(({ rule }) => rule);
    expect(rules.filter((rule, i) => rules.indexOf(rule) !== i)).toEqual([]);
  });

  test('finds its text once in the code as it is now, and names tests that exist', () => {
    expect(MUTANTS.length).toBeGreaterThan(100);
    expect(MUTANTS.map(problemOf).filter((problem) => problem !== undefined)).toEqual([]);
  });

  test('has a test that kills it, or a sentence on why none can', () => {
    expect(MUTANTS.filter(({ killers }) => killers.length === 0)).toEqual([]);
    const reasons = MUTANTS.flatMap(({ equivalent }) => equivalent ?? []);
    expect(reasons.filter((reason) => !/^[A-Z].+\.$/.test(reason))).toEqual([]);
  });
});

describe('a mutant', () => {
  const mutant = (change: Partial<Mutant>): Mutant => ({
    rule: 'a row is due when its lease has ended',
    file: 'lambdas/runtime/rows.ts',
    from: 'if (leaseUntil < now) return row;',
    to: 'return row;',
    killers: ['test/mutants/catalogue.test.ts'],
    ...change,
  });

  test('finds its text however the formatter breaks the lines', () => {
    const source = 'a();\nif (leaseUntil < now)\n  return row;\nb();';
    expect(mutated(source, mutant({}))).toBe('a();\nreturn row;\nb();');
    expect(mutated(source, mutant({ to: '$& $1' }))).toBe('a();\n$& $1\nb();');
  });

  test.each([
    ['not', 0, 'a();'],
    ['twice', 2, 'if (leaseUntil < now) return row; if (leaseUntil < now) return row;'],
  ])('whose text is %s there is named, so that it is aimed anew', (_how, times, source) => {
    expect(() => mutated(source, mutant({}))).toThrow(
      `"a row is due when its lease has ended" looks for a text that occurs ${times} times in lambdas/runtime/rows.ts`,
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
    ['the text that is there already', { from: 'SCHEMA = 1', to: 'SCHEMA = 1' }, 'changes nothing'],
  ])('with %s is refused', (_what, change, problem) => {
    expect(problemOf(mutant(change))).toContain(problem);
  });
});
