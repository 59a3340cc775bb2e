import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);

/** The texts of the TypeScript files below a folder. */
function textsBelow(folder: string): string[] {
  return readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(new URL(`${folder}/${file}`, ROOT), 'utf8'));
}

test('MailroomErrorCode lists every code that the package throws, and no other', () => {
  const errors = readFileSync(new URL('lambdas/runtime/base/error-codes.ts', ROOT), 'utf8');
  const start = errors.indexOf('export type MailroomErrorCode');
  const union = errors.slice(start, errors.indexOf(';\n', start));
  const listed = [...union.matchAll(/^ {2}\| '(\w+)'/gm)].map(([, code]) => code);
  const text = ['lambdas/runtime', 'lib', 'cli'].flatMap(textsBelow).join('\n').replace(union, '');
  const thrown = [...text.matchAll(/\b(?:MailroomError|PoisonMessage|super)\(\s*'([A-Z][A-Z_]+)'/g)].map(
    ([, code]) => code,
  );
  expect(thrown.length).toBeGreaterThan(40);
  expect(thrown.filter((code) => !listed.includes(code))).toEqual([]);
  expect(listed.filter((code) => !text.includes(`'${code}'`))).toEqual([]);
});
