import { stripVTControlCharacters } from 'node:util';
import type { Reporter, TestCase } from 'vitest/node';
import type { VerifyResult } from './receipt.ts';
import type { TestMessage } from './run-tests.ts';

/** Sends what the tests find to the process that started them, see run-tests.ts. */
export const receiptReporter: Reporter = {
  onInit: () => {
    // That process was killed. Its command for destroying must not meet tests that still run: 0 is this process group.
    if (process.send) process.once('disconnect', () => process.kill(0, 'SIGKILL'));
  },
  onTestModuleStart: ({ relativeModuleId }) => send({ file: `Running ${relativeModuleId}` }),
  onTestCaseReady: ({ name }) => send({ begun: name }),
  onTestCaseResult: (test) => send({ result: resultOf(test) }),
  onTestSuiteResult: (suite) => fail(suite.fullName, suite.errors()),
  onTestModuleEnd: (module) => fail(module.relativeModuleId, module.errors()),
  onTestRunEnd: (_modules, unhandled) => fail('no error is unhandled', unhandled),
};

/** The result of a test: its annotations are the detail, and a test that skips itself says why the target cannot show it. */
export function resultOf(
  test: Pick<TestCase, 'fullName' | 'result' | 'diagnostic' | 'annotations'>,
): VerifyResult {
  const seconds = Math.round((test.diagnostic()?.duration ?? 0) / 1_000);
  const found = { check: test.fullName, seconds };
  const { state, note, errors } = { note: undefined, ...test.result() };
  if (state === 'passed')
    return {
      ...found,
      outcome: 'passed',
      detail: test
        .annotations()
        .map(({ message }) => message)
        .join('\n'),
    };
  if (state === 'skipped' && note !== undefined) return { ...found, outcome: 'not-shown', detail: note };
  return { ...found, outcome: 'failed', detail: messagesOf(errors ?? [{ message: 'It was not run.' }]) };
}

function fail(check: string, errors: readonly { readonly message: string }[]): void {
  if (errors.length > 0)
    send({ result: { check, outcome: 'failed', seconds: 0, detail: messagesOf(errors) } });
}

function messagesOf(errors: readonly { readonly message: string }[]): string {
  return stripVTControlCharacters(errors.map(({ message }) => message).join('\n'));
}

function send(message: TestMessage): void {
  process.send?.(message);
}
