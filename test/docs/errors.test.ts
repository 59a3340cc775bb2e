import { expect, test } from 'vitest';
import { errorHelp } from '../../lambdas/runtime/base/documentation.ts';
import { EXPLANATIONS } from './explanations.ts';

/** The codes of the entries that break a rule. */
function codesOf(entries: typeof EXPLANATIONS): string[] {
  return entries.map(({ code }) => code);
}

test('every code is explained once, by its cause, its result and the action to take, and found by its alphabet', () => {
  expect(codesOf(EXPLANATIONS.filter(({ parts }) => parts.length !== 3))).toEqual([]);
  const codes = codesOf(EXPLANATIONS);
  expect(codes.filter((code, i) => codes.indexOf(code) !== i)).toEqual([]);
  const misplaced = EXPLANATIONS.filter(({ code, section }, i) => {
    const before = EXPLANATIONS[i - 1];
    return before?.section === section && before.code > code;
  });
  expect(codesOf(misplaced)).toEqual([]);
});

test('an explanation has at most 70 words, in whole sentences', () => {
  const long = EXPLANATIONS.filter(({ parts }) => parts.join(' ').split(/\s+/).length > 70);
  expect(codesOf(long)).toEqual([]);
  const unended = EXPLANATIONS.filter(({ parts }) => parts.some((text) => !/^[A-Z`].*\.$/.test(text)));
  expect(codesOf(unended)).toEqual([]);
});

test('the link of an error leads to the entry of its code', () => {
  const links = EXPLANATIONS.map(({ code }) => errorHelp(code as never).split('#')[1]);
  expect(links).toEqual(codesOf(EXPLANATIONS).map((code) => code.toLowerCase()));
});
