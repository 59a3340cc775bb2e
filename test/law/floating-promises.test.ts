import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url).pathname;

/** A handler that awaits neither of its calls, on lines 5 and 6; the last two are fine. */
const UNAWAITED = [
  "import { leased } from '../runtime/index.ts';",
  "import { OrderPlaced } from './events.ts';",
  '',
  'export const careless = leased(OrderPlaced, async (_event, ctx) => {',
  "  ctx.once('charge', async () => 1);",
  '  ctx.commit({});',
  "  await ctx.once('ship', async () => 1);",
  '  await ctx.commit({});',
  '});',
];

test('Biome’s noFloatingPromises, as docs/testing.md shows it, finds an un-awaited ctx.once and ctx.commit, and none in the example', () => {
  const folder = mkdtempSync(join(tmpdir(), 'floating-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(join(ROOT, 'lambdas'), join(folder, 'lambdas'), { recursive: true });
  const rules = { recommended: false, nursery: { noFloatingPromises: 'error' } };
  writeFileSync(join(folder, 'biome.json'), JSON.stringify({ linter: { rules } }));
  writeFileSync(join(folder, 'lambdas/example/careless.ts'), UNAWAITED.join('\n'));
  const biome = join(ROOT, 'node_modules/@biomejs/biome/bin/biome');
  const { stdout } = spawnSync(
    process.execPath,
    [biome, 'lint', '--reporter=github', '--max-diagnostics=none', 'lambdas/example'],
    { cwd: folder, encoding: 'utf8' },
  );
  const found = [...stdout.matchAll(/noFloatingPromises,file=([^,]+),line=(\d+)/g)];
  expect(found.map(([, file = '', line]) => `${basename(file)}:${line}`)).toEqual([
    'careless.ts:5',
    'careless.ts:6',
  ]);
});
