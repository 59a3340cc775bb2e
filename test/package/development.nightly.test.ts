import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../localstack/free-port.ts';
import { codeBlocks } from '../docs/code-blocks.ts';
import { cacheWithEngine } from './local-engine.ts';
import { step } from './step.ts';
import { linkIn, makeApp } from './stranger.ts';
import { pack, packageFolder } from './tarball.ts';

const blocks = codeBlocks(await readFile(new URL('../../docs/development.md', import.meta.url), 'utf8'));
const workflow = blocks.find(({ language }) => language === 'yaml')?.code ?? '';
const integration = blocks.find(({ file }) => file === 'integration/charge.ts');

let folder = '';
let app = '';
beforeAll(async () => {
  folder = await packageFolder();
  app = join(folder, 'shop');
  await makeApp(app, 'CommonJS');
  await linkIn(app, await pack(folder));
  await mkdir(join(app, 'integration'));
  await writeFile(join(app, 'integration', 'charge.ts'), integration?.code ?? '');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test('the steps of the workflow start an engine, deploy the app and pass its integration test, with the cached engine', async () => {
  const cache = await cacheWithEngine(join(folder, 'cache'));
  const variables: Record<string, string> = { ...cache, MAILROOM_PORT: String(await freePort()) };
  const shell = (script: string) => step(app, 'bash', ['-e', '-o', 'pipefail', '-c', script], variables);
  const steps = [...workflow.matchAll(/^ +- run: (.+)$/gm)].map(([, script = '']) => script);
  expect(steps.shift()).toBe('npm ci'); // the packages are linked
  expect(steps).toHaveLength(4);

  variables.GITHUB_ENV = join(folder, 'github-env');
  try {
    for (const script of steps) {
      await writeFile(variables.GITHUB_ENV, '');
      await shell(script);
      const set = (await readFile(variables.GITHUB_ENV, 'utf8')).matchAll(/^(\w+)=(.*)$/gm);
      for (const [, name = '', value = ''] of set) variables[name] = value;
    }
    expect(variables.AWS_ENDPOINT_URL).toContain(variables.MAILROOM_PORT);

    // The hot reload of the page.
    const bank = join(app, 'src', 'bank.ts');
    await writeFile(bank, (await readFile(bank, 'utf8')).replace('charge of', 'hot'));
    const [swap = ''] = blocks.flatMap(({ code }) => code.match(/^npx cdk deploy --hotswap$/m) ?? []);
    expect(await step(app, 'bash', ['-c', `${swap} 2>&1`], variables)).toContain('hotswapped!');
    const [charge = ''] = steps.slice(-1);
    const test = join(app, 'integration', 'charge.ts');
    await writeFile(test, (await readFile(test, 'utf8')).replace('/:charge$/', '/^hot /'));
    await shell(charge);
  } finally {
    await shell('npx cdk-mailroom local stop');
  }
  // What the workflow caches is what was installed, and nothing was installed beside it.
  const cached = /path: ~\/\.cache\/mailroom\/(.+)\*$/m.exec(workflow)?.[1] ?? 'none';
  const installed = (await readdir(join(folder, 'cache', 'mailroom'))).filter((name) =>
    name.startsWith(cached),
  );
  expect(installed).toHaveLength(1);
});
