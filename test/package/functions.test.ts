import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FUNCTION_ENVIRONMENT } from '../../bench/bundles/import-time.ts';
import { BUILT_FUNCTIONS, buildFunctions } from '../../tools/pack/functions.ts';
import { staticImports } from './imports.ts';
import { step } from './step.ts';

const LICENSES = 'THIRD-PARTY-LICENSES.txt';

/** Outside the repository, where no `node_modules` is found. */
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mailroom-functions-'));
  await buildFunctions(folder);
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** Imports a built function, and prints the type of its handler. */
async function startedIn(file: string): Promise<string> {
  const code = `
    Object.assign(process.env, ${JSON.stringify(FUNCTION_ENVIRONMENT)});
    const { handler } = await import(${JSON.stringify(pathToFileURL(file).href)});
    console.log(typeof handler);
    process.exit();`;
  return step(folder, process.execPath, ['--input-type=module', '--eval', code]);
}

test('every function of Mailroom itself is built', async () => {
  const lambdas = await readdir(new URL('../../lambdas/', import.meta.url));
  const own = lambdas.filter((name) => !['runtime', 'example'].includes(name));
  expect([...BUILT_FUNCTIONS].sort()).toEqual(own.sort());
  expect((await readdir(folder)).sort()).toEqual([LICENSES, ...own].sort());
});

describe.each(BUILT_FUNCTIONS)('the built function %s', (name) => {
  const read = (file: string) => readFile(join(folder, name, file), 'utf8');

  test('starts in a Node.js process that has no packages', async () => {
    expect(await startedIn(join(folder, name, 'index.mjs'))).toBe('function\n');
  });

  test('imports only modules of Node.js when it starts', async () => {
    const imports = staticImports(await read('index.mjs'));
    expect(imports).toContain('node:https');
    expect(imports.filter((specifier) => !isBuiltin(specifier))).toEqual([]);
  });

  test('refers to the source map beside it', async () => {
    expect((await read('index.mjs')).trimEnd()).toMatch(/\/\/# sourceMappingURL=index\.mjs\.map$/);
    const { sources } = JSON.parse(await read('index.mjs.map')) as { readonly sources: readonly string[] };
    expect(sources).toContain(`lambdas/${name}/handler.ts`);
  });
});

test('the licenses of the bundled packages are beside the functions', async () => {
  const text = await readFile(join(folder, LICENSES), 'utf8');
  expect(text).toMatch(/^== @aws-sdk\/client-dynamodb [\d.]+: Apache-2\.0$/m);
  expect(text).toMatch(/^== @opentelemetry\/api [\d.]+: Apache-2\.0$/m);
  expect(text).toMatch(/^== @aws-lambda-powertools\/logger [\d.]+: MIT-0$/m);
});
