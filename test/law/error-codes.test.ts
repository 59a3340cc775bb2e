import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { EXPLANATIONS } from '../docs/explanations.ts';
import { messagesIn } from './error-messages.ts';

const ROOT = new URL('../../', import.meta.url);

/** Folders whose errors carry a code. */
const FOLDERS = ['bench', 'bin', 'cli', 'demo', 'lambdas', 'lib', 'localstack', 'testing', 'verify'];

/** The example is an app: its API has its own codes. */
const EXAMPLE = /^lambdas\/example\//;

/** Names of AWS, of environment variables and of states, which are written as codes are. */
const NO_CODES =
  /^(?:ALL_NEW|ALL_OLD|DATABASE_URL|IN_PROGRESS|NEW_IMAGE|UPDATED_NEW|(?:AWS|KAFKA|LC|MAILROOM|MYSQL|NODE|POWERTOOLS)_\w+)$/;

/** The message of a broken schedule ends with the call that repeats it. */
const SEED = 'To run just this schedule again';

/** Where a code stands that is one word: other words in capitals are states of rows. */
const PLACES =
  /(?:(?:Error|Message|super|poison)\(\s*|\bcode: |refuse\(\s*\w+,\s*\d+,\s*)'(?<code>[A-Z][A-Z_]+)'/g;

const sources = FOLDERS.flatMap((folder) =>
  readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' })
    .map((file) => `${folder}/${file}`)
    .filter((path) => /\.tsx?$/.test(path) && !EXAMPLE.test(path))
    .map((path) => ({ path, text: readFileSync(new URL(path, ROOT), 'utf8') })),
);

const ofPackage = [
  ...readFileSync(new URL('lambdas/runtime/base/error-codes.ts', ROOT), 'utf8').matchAll(/^ {2}\| '(\w+)'/gm),
].map(([, code = '']) => code);

/** Those of the tools of the repository, which the package does not contain, are listed by their explanations only. */
const listed = [...new Set([...ofPackage, ...EXPLANATIONS.map(({ code }) => code)])];

function codesIn(text: string): string[] {
  const placed = [...text.matchAll(PLACES)].map(({ groups }) => groups?.code ?? '');
  const words = [...text.matchAll(/'(?<code>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)'/g)].map(
    ({ groups }) => groups?.code ?? '',
  );
  return [...new Set([...placed, ...words])].filter((code) => !NO_CODES.test(code));
}

describe('the lists of error codes', () => {
  test('name every code in the source code, those of the package in MailroomErrorCode', () => {
    const unlisted = sources.flatMap(({ path, text }) => {
      const known = /^(?:bench|demo|verify|lib\/example)\//.test(path) ? listed : ofPackage;
      return codesIn(text)
        .filter((code) => !known.includes(code))
        .map((code) => `${path}: ${code}`);
    });
    expect(unlisted).toEqual([]);
    expect(listed.length).toBeGreaterThan(100);
  });

  test('name no other code', () => {
    const text = sources
      .filter(({ path }) => path !== 'lambdas/runtime/base/error-codes.ts')
      .map((source) => source.text)
      .join('\n');
    expect(listed.filter((code) => !text.includes(`'${code}'`))).toEqual([]);
    expect(ofPackage).toEqual([...new Set(ofPackage)]);
  });

  test('are complete: docs/errors.md explains every code of the package', () => {
    expect(ofPackage.filter((code) => EXPLANATIONS.every((entry) => entry.code !== code))).toEqual([]);
  });

  test('a code is found wherever it is thrown, returned or compared', () => {
    const code = [
      "throw new MailroomError('NEW_CODE', 'text');",
      "throw poison('ODD', text);",
      "refuse(c, 403, 'LOST', text);",
      "return { code: 'GONE', status: 'DEAD' };",
      "if (word === 'TWO_WORDS') return process.env['AWS_REGION'];",
    ];
    expect(codesIn(code.join('\n'))).toEqual(['NEW_CODE', 'ODD', 'LOST', 'GONE', 'TWO_WORDS']);
  });
});

describe('error messages', () => {
  test('end with a full stop, or with the text of another message', () => {
    const open = sources.flatMap(({ path, text }) =>
      messagesIn(text)
        .filter(({ end }) => /^['"`]/.test(end) && !/(?:\.|\})['"`]\)?$/.test(end) && !end.includes(SEED))
        .map(({ line, end }) => `${path}:${line} ${end}`),
    );
    expect(open).toEqual([]);
  });

  test('are found in every call that makes an error', () => {
    const found = sources.flatMap(({ text }) => messagesIn(text));
    expect(found.length).toBeGreaterThan(150);
    const call = "f(new MailroomError('A_B', `x $" + "{g('}')} ` + 'y, z', { cause }))";
    expect(messagesIn(`// new MailroomError('C_D', 'no')\n${call}`)).toEqual([
      { line: 2, code: 'A_B', end: "'y, z'" },
    ]);
  });
});
