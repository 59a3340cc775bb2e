import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url).pathname;

test('a single handler passed to lambdaConsumer is refused with the remedy, and other mistakes as before', () => {
  mkdirSync(`${ROOT}.local`, { recursive: true });
  const folder = mkdtempSync(`${ROOT}.local/compiler-`);
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(
    join(folder, 'mistakes.ts'),
    [
      "import { lambdaConsumer, leased } from '../../lambdas/runtime/index.ts';",
      "import { OrderPlaced } from '../../lambdas/example/events.ts';",
      'lambdaConsumer(leased(OrderPlaced, async () => {}));',
      'lambdaConsumer([5]);',
      'lambdaConsumer(({ tabel }) => [leased(OrderPlaced, async () => tabel)]);',
      'lambdaConsumer(({ table }) => [leased(OrderPlaced, async () => table)]);',
    ].join('\n'),
  );
  const settings = { extends: '../../tsconfig.json', include: ['.'] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(settings));
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const { stdout } = spawnSync(process.execPath, [tsc, '-p', folder, '--pretty', 'false'], {
    cwd: folder,
    encoding: 'utf8',
  });
  const errors = stdout.trim().split(/\n(?=\S)/);
  expect(errors).toEqual([
    expect.stringMatching(
      /^mistakes\.ts\(3,.*\n +Type '"leased"' is not assignable to type '"lambdaConsumer takes a list: lambdaConsumer\(\[leased\(…\)\]\)"'\.$/s,
    ),
    expect.stringMatching(/^mistakes\.ts\(4,.*Type 'number' is not assignable to type 'Handler'\.$/),
    expect.stringMatching(/^mistakes\.ts\(5,.*Property 'tabel' does not exist on type 'LambdaParts'\.$/),
  ]);
});
