import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { codeBlocks } from '../code-blocks.ts';
import { codeOf } from '../page-module.ts';
import { ROOT } from '../pages.ts';

const page = 'docs/recipes/share-definitions.md';
const blocks = codeBlocks(readFileSync(ROOT + page, 'utf8'));
const blockOf = (language: string) => blocks.find((one) => one.language === language)?.code ?? '';

/** The package in its own repository, with its first catalog on the branch that a pull request targets. */
let folder = '';

beforeAll(() => {
  mkdirSync(`${ROOT}.local`, { recursive: true });
  folder = mkdtempSync(`${ROOT}.local/shared-definitions-`);
  mkdirSync(join(folder, 'src'));
  writeFileSync(join(folder, 'package.json'), blockOf('json'));
  define((code) => code);
  const { scripts } = JSON.parse(blockOf('json')) as { scripts: { catalog: string } };
  expect(shell(`npx ${scripts.catalog}`).stderr).toBe('');
  const git = (...words: string[]) =>
    execFileSync('git', ['-c', 'user.name=ada', '-c', 'user.email=ada@example.com', ...words], {
      cwd: folder,
    });
  git('init', '--quiet');
  git('add', '.');
  git('commit', '--quiet', '--message', 'First catalog');
  git('update-ref', 'refs/remotes/origin/main', 'HEAD');
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Writes the definitions of the page, changed. */
function define(change: (code: string) => string): void {
  const text = blocks.find((one) => one.file === 'src/index.ts')?.code ?? '';
  const changed = change(text);
  writeFileSync(
    join(folder, 'src/index.ts'),
    changed.replace("'cdk-mailroom/runtime'", "'../../../lambdas/runtime/index.ts'"),
  );
}

/** Runs lines of the page in the package, as a step of a pipeline does. */
function shell(lines: string) {
  const command = `"${process.execPath}" "${ROOT}cli/bin/mailroom.js"`;
  return spawnSync('bash', ['-e', '-o', 'pipefail', '-c', lines.replaceAll('npx cdk-mailroom', command)], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, GITHUB_BASE_REF: 'main' },
  });
}

const [check = '', isCurrent = ''] = blockOf('sh').split('\n');

test('the module of the page exports definitions', async () => {
  expect(Object.keys(await codeOf(page, 'src/index.ts')).sort()).toEqual(['OrderCancelled', 'OrderPlaced']);
});

test('the pipeline accepts what did not change', () => {
  define((code) => code);
  const { status, stdout, stderr } = shell(`${check}\n${isCurrent}`);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toContain('0 breaking changes, 0 compatible');
});

test('the pipeline refuses a removed field, and accepts it in a new version with upcast', () => {
  const withoutTotal = (code: string) => code.replace(' totalCents: z.int(),', '');
  define(withoutTotal);
  const refused = shell(check);
  expect(refused.status).toBe(1);
  expect(refused.stdout).toContain('OrderPlaced of orders, data.totalCents: removed');

  define((code) => withoutTotal(code).replace('version: 1,', 'version: 2, upcast: (data) => data,'));
  const accepted = shell(check);
  expect({ status: accepted.status, stderr: accepted.stderr }).toEqual({ status: 0, stderr: '' });
  expect(accepted.stdout).toContain('0 breaking changes, 2 compatible');
});

test('the pipeline refuses a catalog that was not exported again', () => {
  define((code) => code.replace('note:', 'hint: z.string().optional(), note:'));
  expect(shell(check).status).toBe(0);
  expect(shell(isCurrent).status).toBe(1);
});
