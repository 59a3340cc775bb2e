import { describe, expect, test } from 'vitest';
import type { TestResult } from 'vitest/node';
import { resultOf } from '../../../verify/receipt-reporter.ts';

/** A finished test of 1.6 seconds. */
const finished = (result: TestResult, notes: readonly string[] = []) =>
  resultOf({
    fullName: 'orders > are charged once',
    diagnostic: () => ({ duration: 1_600 }) as never,
    annotations: () => notes.map((message) => ({ message, type: 'notice' })),
    result: () => result,
  });

const failed = (message: string): TestResult => ({ state: 'failed', errors: [{ name: 'Error', message }] });

describe('the result of a test', () => {
  test('has its full name and seconds; its annotations are the detail', () => {
    expect(finished({ state: 'passed', errors: undefined }, ['20 orders', '120 events'])).toEqual({
      check: 'orders > are charged once',
      outcome: 'passed',
      seconds: 2,
      detail: '20 orders\n120 events',
    });
  });

  test('is not shown if the test skips itself and says why', () => {
    const skipped = { state: 'skipped', note: 'the engine has no move task', errors: undefined } as const;
    expect(finished(skipped)).toMatchObject({ outcome: 'not-shown', detail: skipped.note });
  });

  test('is failed without a reason for skipping it: its file or a hook may be broken', () => {
    const skipped = { state: 'skipped', note: undefined, errors: undefined } as const;
    expect(finished(skipped)).toMatchObject({ outcome: 'failed', detail: 'It was not run.' });
  });

  test('names the errors without colors', () => {
    expect(finished(failed('expected \u001b[31m2\u001b[39m to be 1'))).toMatchObject({
      outcome: 'failed',
      detail: 'expected 2 to be 1',
    });
  });
});
