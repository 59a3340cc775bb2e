import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

// Who may import which folder is written in biome.json, as patterns that match nothing if they are mistyped. So they are tried.
const REFUSED: readonly (readonly [file: string, imported: string])[] = [
  ...['lib', 'cli', 'demo', 'localstack', 'test', 'bench'].flatMap((folder) => [
    ['lambdas/relay-stream/a.ts', `../../${folder}/b.ts`] as const,
    ['lambdas/runtime/a.ts', `../../${folder}/b.ts`] as const,
    ['testing/a.ts', `../${folder}/b.ts`] as const,
  ]),
  ...['aws-cdk-lib', 'aws-cdk-lib/aws-sqs', 'constructs'].flatMap((name) => [
    ['lambdas/example/orders/a.ts', name] as const,
    ['lambdas/runtime/a.ts', name] as const,
    ['testing/a.ts', name] as const,
    ['cli/a.ts', name] as const,
  ]),
  ['lambdas/runtime/a.ts', '../example/events.ts'],
  ['testing/a.ts', '../lambdas/example/events.ts'],
  ['lambdas/runtime/a.ts', '../../testing/memory-table.ts'],
  ['lambdas/example/orders/a.ts', '../../../testing/manual-clock.ts'],
  ['lib/a.ts', './example/stage.ts'],
  ['lib/a.ts', '../lambdas/example/events.ts'],
  ...['cli', 'demo', 'localstack', 'test', 'bench', 'testing'].flatMap((folder) => [
    ['lib/a.ts', `../${folder}/b.ts`] as const,
    ['lib/example/a.ts', `../../${folder}/b.ts`] as const,
  ]),
  ...['lib', 'lib/example', 'demo', 'localstack', 'test', 'testing', 'bench', 'lambdas/example'].flatMap(
    (folder) => [
      ['cli/a.ts', `../${folder}/b.ts`] as const,
      ['cli/frame/a.ts', `../../${folder}/b.ts`] as const,
    ],
  ),
  ...['lib', 'lib/example', 'demo', 'test', 'testing', 'bench', 'lambdas/example'].map(
    (folder) => ['cli/local/a.ts', `../../${folder}/b.ts`] as const,
  ),
  ...['bin', 'demo', 'localstack', 'site', 'ui', 'verify'].flatMap((from) => [
    [`${from}/a.ts`, '../test/b.ts'] as const,
    [`${from}/a.ts`, '../bench/b.ts'] as const,
  ]),
];

const ALLOWED: readonly (readonly [file: string, imported: string])[] = [
  ['lambdas/example/a.ts', '../runtime/event.ts'],
  ['lambdas/runtime/a.ts', '@aws-sdk/lib-dynamodb'],
  ['testing/a.ts', '../lambdas/runtime/store/table.ts'],
  ['testing/a.ts', './memory-table.ts'],
  ['lib/a.ts', '../lambdas/runtime/store/rows.ts'],
  ['lib/a.ts', 'aws-cdk-lib'],
  ['lib/example/a.ts', '../../lambdas/example/events.ts'],
  ['cli/a.ts', '../lambdas/runtime/store/rows.ts'],
  ['cli/local/a.ts', '../../localstack/engine.ts'],
  ['demo/a.ts', '../localstack/engine.ts'],
  ['test/a.ts', '../lib/mailroom.ts'],
];

test('lint refuses the imports that the law of the tree refuses, and no others', () => {
  expect(lintRefuses([...REFUSED, ...ALLOWED])).toEqual(REFUSED.map(([file, to]) => `${file} <- ${to}`));
});

/** Those of these imports that lint refuses, each tried in a file of its own beside the one that is named. */
function lintRefuses(imports: typeof REFUSED): string[] {
  const root = mkdtempSync(join(tmpdir(), 'mailroom-law-'));
  try {
    cpSync(new URL('../../biome.json', import.meta.url), join(root, 'biome.json'));
    const tried = imports.map(([file, to], index) => {
      const path = file.replace(/\/a\.ts$/, `/a${index}.ts`);
      mkdirSync(join(root, dirname(path)), { recursive: true });
      writeFileSync(join(root, path), `import { it } from '${to}';\nconsole.log(it);\n`);
      return { path, shown: `${file} <- ${to}` };
    });
    const refused = new Set(diagnosedFiles(root));
    return tried.filter(({ path }) => refused.has(path)).map(({ shown }) => shown);
  } finally {
    rmSync(root, { recursive: true });
  }
}

function diagnosedFiles(root: string): string[] {
  const biome = createRequire(import.meta.url).resolve('@biomejs/biome/bin/biome');
  const only = ['lint', '--only=style/noRestrictedImports', '--reporter=json', '--max-diagnostics=none'];
  // It answers 1 when it refuses something.
  const { stdout } = spawnSync(process.execPath, [biome, ...only, '.'], { cwd: root, encoding: 'utf8' });
  const report: { readonly diagnostics: readonly { readonly location: { readonly path: string } }[] } =
    JSON.parse(stdout);
  return report.diagnostics.map(({ location }) => location.path.replaceAll('\\', '/'));
}
