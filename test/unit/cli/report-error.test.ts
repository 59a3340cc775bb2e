import { expect, test } from 'vitest';
import { EXIT } from '../../../cli/terminal/io.ts';
import { reportError } from '../../../cli/terminal/report-error.ts';
import { errorHelp } from '../../../lambdas/runtime/base/documentation.ts';

/** How an error is reported to a program. */
function reported(error: unknown) {
  let err = '';
  const exit = reportError(error, true, {
    env: {},
    outIsTerminal: false,
    outSize: () => undefined,
    errIsTerminal: false,
    out: () => {},
    err: (text) => {
      err += text;
    },
    signal: new AbortController().signal,
    exitCode: EXIT.ok,
  });
  return { exit, ...(JSON.parse(err) as { error: { code: string; message: string; help?: string } }).error };
}

test.each([
  new RangeError('Invalid time value'),
  new TypeError("Cannot read properties of undefined (reading 'slice')"),
  new SyntaxError('Unexpected token'),
])('a failure of the command itself is a defect, and not AWS’s: %s', (error) => {
  const { exit, code, message, help } = reported(error);
  expect({ exit, code }).toEqual({ exit: EXIT.defect, code: 'DEFECT' });
  expect(message).toContain(`${error.name}: ${error.message}`);
  expect(message).toContain('an internal error of the mailroom command');
  expect(help).toBe(errorHelp('DEFECT'));
});

test.each([
  Object.assign(new Error('slow down'), { name: 'ThrottlingException', $metadata: {} }),
  Object.assign(new SyntaxError('Unexpected token <'), { $response: {} }),
  Object.assign(new TypeError('Invalid URL'), { code: 'ERR_INVALID_URL' }),
])('what AWS, or the way to it, has failed is not a defect: %s', (error) => {
  expect(reported(error).exit).toBe(EXIT.aws);
});

test.each([
  [Object.assign(new Error('none'), { name: 'CredentialsProviderError' }), 'NO_CREDENTIALS'],
  [Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }), 'UNREACHABLE'],
  [new AggregateError([Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })]), 'UNREACHABLE'],
  [new Error('Region is missing'), 'NO_REGION'],
])('%s is explained by its name or code', (error, code) => {
  expect(reported(error)).toMatchObject({ code, exit: EXIT.aws, help: errorHelp(code as 'NO_REGION') });
});

test('an error that quotes the error of another program is not explained by it', () => {
  const quoted = 'The function sweep failed: AccessDeniedException: TimeoutError';
  const failed = Object.assign(new Error(quoted), { code: 'FUNCTION_FAILED' });
  expect(reported(failed)).toMatchObject({ code: 'FUNCTION_FAILED', message: quoted });
});

test.each([
  ['TokenProviderError', 'NO_CREDENTIALS'],
  ['ExpiredTokenException', 'CREDENTIALS_EXPIRED'],
  ['AccessDenied', 'ACCESS_DENIED'],
  ['InvalidToken', 'BAD_CREDENTIALS'],
  ['SignatureDoesNotMatch', 'BAD_CREDENTIALS'],
  ['TimeoutError', 'UNREACHABLE'],
  ['ParameterNotFound', 'PART_MISSING'],
  ['ThrottlingException', 'ThrottlingException'],
])('an AWS error named %s is reported as %s', (name, code) => {
  const error = Object.assign(new Error('of AWS'), { name, $metadata: {} });
  expect(reported(error)).toMatchObject({ exit: EXIT.aws, code });
});
