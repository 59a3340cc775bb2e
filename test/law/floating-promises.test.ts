import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { copyDeclarations } from '../../tools/pack/declarations.ts';

const ROOT = new URL('../../', import.meta.url).pathname;

/** A handler that awaits neither of its first two calls. */
const CARELESS = [
  'export const careless = leased(OrderPlaced, async (_event, ctx) => {',
  "  ctx.once('charge', async () => 1);",
  '  ctx.commit({});',
  "  await ctx.once('ship', async () => 1);",
  '  await ctx.commit({});',
  '});',
];

test('Biome’s noFloatingPromises finds an un-awaited ctx.once and ctx.commit, and none in the handlers of the example', () => {
  const folder = appFolder();
  cpSync(join(ROOT, 'lambdas'), join(folder, 'lambdas'), { recursive: true });
  const imports = [
    "import { leased } from '../runtime/index.ts';",
    "import { OrderPlaced } from './events.ts';",
  ];
  writeFileSync(join(folder, 'lambdas/example/careless.ts'), [...imports, ...CARELESS].join('\n'));
  expect(floatingIn(folder, 'lambdas/example')).toEqual(['careless.ts:4', 'careless.ts:5']);
});

test('it also finds them by the declarations of the published package, whose paths it can follow', async () => {
  const folder = appFolder();
  const installed = join(folder, 'node_modules/cdk-mailroom');
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const types = join(folder, 'types');
  const built = ['-p', join(ROOT, 'tsconfig.build.json'), '--declarationDir', types];
  spawnSync(process.execPath, [tsc, ...built, '--emitDeclarationOnly'], { cwd: ROOT });
  await copyDeclarations(types, join(installed, 'dist'), ['lambdas/runtime/index'], []);
  const exported = { './runtime': { types: './dist/lambdas/runtime/index.d.ts' } };
  writeFileSync(
    join(installed, 'package.json'),
    JSON.stringify({ name: 'cdk-mailroom', type: 'module', exports: exported }),
  );
  mkdirSync(join(folder, 'src'));
  const imports = [
    "import { leased } from 'cdk-mailroom/runtime';",
    "import { OrderPlaced } from './events.ts';",
  ];
  writeFileSync(join(folder, 'src/careless.ts'), [...imports, ...CARELESS].join('\n'));
  expect(floatingIn(folder, 'src')).toEqual(['careless.ts:4', 'careless.ts:5']);
});

function appFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'floating-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const rules = { recommended: false, nursery: { noFloatingPromises: 'error' } };
  writeFileSync(join(folder, 'biome.json'), JSON.stringify({ linter: { rules } }));
  const dependencies = { 'cdk-mailroom': '*' };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', dependencies }));
  return folder;
}

/** Runs only that rule. @returns each finding as its file and line */
function floatingIn(folder: string, path: string): string[] {
  const biome = join(ROOT, 'node_modules/@biomejs/biome/bin/biome');
  const arguments_ = ['lint', '--reporter=github', '--max-diagnostics=none', path];
  const { stdout } = spawnSync(process.execPath, [biome, ...arguments_], { cwd: folder, encoding: 'utf8' });
  const found = [...stdout.matchAll(/noFloatingPromises,file=([^,]+),line=(\d+)/g)];
  return found.map(([, file = '', line]) => `${basename(file)}:${line}`);
}
