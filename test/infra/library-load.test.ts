import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

// A process of its own: this one has loaded the SDK for other tests.
const CODE = `
  import { register } from 'node:module';
  register('data:text/javascript,' + encodeURIComponent(\`
    import { writeSync } from 'node:fs';
    export async function resolve(name, context, next) {
      const found = await next(name, context);
      writeSync(1, found.url + '\\\\n');
      return found;
    }
  \`));
  await import('./lib/index.ts');
`;

test('importing the library loads no SDK client: synth makes no call', () => {
  const root = new URL('../../', import.meta.url);
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '--eval', CODE],
    { cwd: root, encoding: 'utf8' },
  );
  const loaded = stdout.split('\n');
  expect(loaded, stderr).toContainEqual(expect.stringMatching(/\/lib\/mailroom\/outbox-relay\.ts$/));
  expect(loaded).toContainEqual(expect.stringMatching(/\/node_modules\/aws-cdk-lib\//));
  expect(loaded.filter((url) => /\/node_modules\/@aws-sdk\/(client|lib)-/.test(url))).toEqual([]);
});
