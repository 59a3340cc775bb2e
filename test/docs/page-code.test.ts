import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { codeBlocks } from './code-blocks.ts';
import { CODE_FOLDER, pageCode } from './page-code.ts';
import { ROOT } from './pages.ts';

const firstApp = pageOf('docs/getting-started.md', [
  '```ts file=src/events.ts',
  "export const events = ['OrderPlaced'];",
  '```',
  '```ts file=src/payments.ts',
  "import { events } from './events.js';",
  'export const payments = events;',
  '```',
]);

const importing = ['```ts', "import { payments } from '../src/payments.js';", 'payments;', '```'];

test('each block is a separate file, on the same lines as in the page, after its prelude', () => {
  const page = pageOf('docs/a.md', [
    '# A',
    '<!-- ts',
    'declare const x: 1;',
    '-->',
    '```ts file=src/x.ts',
    'x;',
    '```',
    '```ts',
    'y;',
    '```',
  ]);
  expect([...pageCode(page, firstApp)]).toEqual([
    [`${CODE_FOLDER}docs/a.md/src/x.ts`, '\n\ndeclare const x: 1;\n\n\nx;\n'],
    [`${CODE_FOLDER}docs/a.md/src/line-9.ts`, `${'\n'.repeat(8)}y;\n`],
  ]);
});

test('a page that imports a file of the first app gets it, and what that imports', () => {
  const files = [...pageCode(pageOf('docs/a.md', importing), firstApp).keys()];
  expect(files).toEqual(
    ['line-2', 'payments', 'events'].map((name) => `${CODE_FOLDER}docs/a.md/src/${name}.ts`),
  );
});

test('an import without an extension finds the file, and a test has the names that Jest gives it', () => {
  const page = pageOf('docs/a.md', [
    '# A',
    '```ts file=test/a.test.ts',
    "import { payments } from '../src/payments';",
    "test('payments', () => expect(payments).toEqual(['OrderPlaced']));",
    '```',
  ]);
  const files = pageCode(page, firstApp);
  expect(files.get(`${CODE_FOLDER}docs/a.md/test/a.test.ts`)?.split('\n').slice(0, 3)).toEqual([
    "import { expect, test } from 'vitest';",
    '',
    "import { payments } from '../src/payments.ts';",
  ]);
  expect([...files.keys()]).toContain(`${CODE_FOLDER}docs/a.md/src/events.ts`);
  expect(compile(page)).toEqual([]);
});

test('a file of the page goes before the one of the first app', () => {
  const page = pageOf('docs/a.md', [
    ...importing,
    '```ts file=src/events.ts',
    'export const events = 1;',
    '```',
  ]);
  expect(pageCode(page, firstApp).get(`${CODE_FOLDER}docs/a.md/src/events.ts`)?.trim()).toBe(
    'export const events = 1;',
  );
});

test('two blocks of one page that are the same file are refused', () => {
  const twice = pageOf('docs/a.md', ['```ts file=src/x.ts', '```', '```ts file=src/x.ts', '```']);
  expect(() => pageCode(twice, firstApp)).toThrow(
    'docs/a.md:4: the block is file=src/x.ts, and so is the one in line 2',
  );
});

test('an entry of the package is the source that it is built of, and one that there is not stays as it is', () => {
  const page = pageOf('docs/a.md', [
    '```ts file=src/x.ts',
    "import { Mailroom } from 'cdk-mailroom';",
    "export { explore } from 'cdk-mailroom/testing';",
    "import 'cdk-mailroom/nothing';",
    '```',
  ]);
  const text = pageCode(page, firstApp).get(`${CODE_FOLDER}docs/a.md/src/x.ts`);
  expect(text).toContain("from '../../../../../lib/index.ts'");
  expect(text).toContain("from '../../../../../testing/index.ts'");
  expect(text).toContain("import 'cdk-mailroom/nothing'");
});

test('the compiler refuses a broken block, by the line of the page', () => {
  const broken = [
    '# A',
    '',
    '```ts',
    "import { events } from './events.js';",
    '',
    'export const one: string = events;',
    'undeclared;',
    '```',
  ];
  expect(compile(pageOf('docs/a.md', broken))).toEqual([
    'docs/a.md/src/line-4.ts(6,14): error TS2322',
    'docs/a.md/src/line-4.ts(7,1): error TS2304',
  ]);
  expect(compile(pageOf('docs/a.md', importing))).toEqual([]);
});

function pageOf(path: string, lines: readonly string[]) {
  return { path, blocks: codeBlocks(`${lines.join('\n')}\n`) };
}

/** What the compiler says of a page's code, with the settings of the repository. */
function compile(page: ReturnType<typeof pageOf>): string[] {
  mkdirSync(`${ROOT}.local`, { recursive: true });
  const folder = mkdtempSync(`${ROOT}.local/docs-broken-`); // as deep as the real one, so that the package is found
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [path, text] of pageCode(page, firstApp)) {
    const file = join(folder, path.slice(CODE_FOLDER.length));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ extends: '../../tsconfig.json', include: ['.'] }),
  );
  const { stdout } = spawnSync(process.execPath, [`${ROOT}node_modules/typescript/bin/tsc`, '-p', folder], {
    cwd: folder,
    encoding: 'utf8',
  });
  return [...stdout.matchAll(/^(\S+: error TS\d+)/gm)].map(([, complaint = '']) => complaint);
}
