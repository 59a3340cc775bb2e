import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ROOT } from './import-graph.ts';

/** The lines of code of the package and the command, without comments. */
const LINES = ['lambdas', 'lib', 'cli'].flatMap((folder) =>
  readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .flatMap((path) =>
      readFileSync(new URL(`${folder}/${path}`, ROOT), 'utf8')
        .split('\n')
        .filter((line) => !/^\s*(\*|\/\/|\/\*)/.test(line))
        .map((line) => ({ path: `${folder}/${path}`, line: line.trim() })),
    ),
);

/** The places outside a file that match. */
const outside = (file: string, pattern: RegExp) =>
  LINES.filter(({ path, line }) => path !== file && pattern.test(line)).map(
    ({ path, line }) => `${path}: ${line}`,
  );

describe('each of these facts is written once', () => {
  test('the meanings of the names of AWS errors, in base/aws-errors.ts', () => {
    const names =
      /ExpiredToken|TokenProvider|CredentialsProvider|UnrecognizedClient|InvalidClientTokenId|InvalidToken|SignatureDoesNotMatch|AccessDenied|NotAuthorized|Throttl(ing|ed)Exception|ProvisionedThroughput|RequestLimitExceeded/;
    expect(outside('lambdas/runtime/base/aws-errors.ts', names)).toEqual([]);
  });

  test('the words of a verdict, for the command and the console', () => {
    const labels = /'(would (run|fail|publish|sweep)|maybe unsent|too old|not rejectable|effects to check)'/;
    expect(outside('cli/reports/dead-letters/verdict-words.ts', labels)).toEqual([]);
    const counts = /nothing visible is broken|no problem found|'(problem|warning)'\)/i;
    expect(outside('cli/reports/findings/finding-counts.ts', counts)).toEqual([]);
  });

  test('waits and graces, in base/patience.ts', () => {
    const constants = /const \w*(GRACE|BEHIND|STUCK|BORN_LEASE|MISSING_AFTER|UNCLAIMED)\w* = .*\d/;
    const found = outside('lambdas/runtime/base/patience.ts', constants);
    expect(found).toEqual(['cli/terminal/aws-clock.ts: export const BEHIND_MAX_MS = 2_000;']);
  });
});
