import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { step } from '../../package/step.ts';
import { codeBlocks } from '../code-blocks.ts';
import { ROOT } from '../pages.ts';

/** SST looks for its Pulumi in the user's folder, and downloads it unless it is this version: nothing here runs it. */
const [SST, PULUMI] = ['4.17.1', 'v3.215.0'];

/** The outputs of the stack that the page shows. */
const OUTPUTS = {
  OrdersPolicy: 'arn:aws:iam::111122223333:policy/orders',
  OrdersEnvironment: '{"MAILROOM_TABLE":"table","MAILROOM_SERVICE":"orders"}',
};

let folder = '';

beforeAll(async () => {
  await mkdir(join(ROOT, '.local'), { recursive: true });
  folder = await mkdtemp(join(ROOT, '.local', 'sst-'));
  const blocks = codeBlocks(await readFile(join(ROOT, 'docs/recipes/sst.md'), 'utf8'));
  const config = blocks.find(({ file }) => file === 'sst.config.ts')?.code ?? '';
  const bin = join(folder, '.config', 'sst', 'bin');
  for (const one of [bin, join(folder, 'src')]) await mkdir(one, { recursive: true });
  await writeFile(join(bin, 'pulumi'), `#!/bin/sh\necho ${PULUMI}\n`, { mode: 0o755 });
  await writeFile(join(folder, 'src/place-order.mjs'), 'export const handler = async () => {};');
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  await writeFile(join(folder, 'sst.config.ts'), config);
  await step(folder, 'npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', `sst@${SST}`]);
  const home = { XDG_CONFIG_HOME: join(folder, '.config'), NO_BUN: '1', SST_TELEMETRY_DISABLED: '1' };
  await step(folder, 'npx', ['--no', '--', 'sst', 'install', '--stage', 'dev'], home);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const platform = (...path: string[]) => join(folder, '.sst', 'platform', ...path);

test('the configuration of the page has the types of SST', async () => {
  const options = { noEmit: true, strict: true, skipLibCheck: true, target: 'es2022', module: 'esnext' };
  const compilerOptions = { ...options, moduleResolution: 'bundler' };
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, files: ['sst.config.ts'] }),
  );
  const printed = await step(folder, platform('node_modules/.bin/tsc'), []).catch(({ message }) =>
    String(message),
  );
  // The components are TypeScript, too, and not written for these options.
  expect(printed.split('\n').filter((line) => line.startsWith('sst.config.ts'))).toEqual([]);
  expect(printed).not.toMatch(/error TS(?:6053|18003|5\d\d\d)/);
});

test("SST's components give the function the policy and the variables of the stack", async () => {
  await writeFile(platform('registrations.ts'), PROGRAM);
  const bundled = platform('registrations.mjs');
  const banner =
    '--banner:js=import { createRequire as r } from "node:module"; const require = r(import.meta.url); ' +
    'const __dirname = import.meta.dirname ?? new URL(".", import.meta.url).pathname;';
  const external = ['@pulumi/*', '@aws-sdk/*', 'undici', 'esbuild', 'archiver', 'glob', 'vite'];
  await step(folder, platform('node_modules/.bin/esbuild'), [
    platform('registrations.ts'),
    ...['--bundle', '--format=esm', '--platform=node', '--main-fields=module,main', `--outfile=${bundled}`],
    ...[banner, ...external.map((name) => `--external:${name}`)],
  ]);
  const registered = JSON.parse(await step(folder, 'node', [bundled], { OUTPUTS: JSON.stringify(OUTPUTS) }));
  const inputsOf = (type: string) => registered.find((one: { type: string }) => one.type === type)?.inputs;
  expect(inputsOf('aws:lambda/function:Function')).toMatchObject({
    environment: { variables: JSON.parse(OUTPUTS.OrdersEnvironment) },
    loggingConfig: { logFormat: 'JSON' },
  });
  expect(inputsOf('aws:iam/role:Role').managedPolicyArns).toContain(OUTPUTS.OrdersPolicy);
  expect(inputsOf('aws:lambda/functionUrl:FunctionUrl').authorizationType).toBe('AWS_IAM');
});

/** Runs the configuration as SST does, on Pulumi's mocks, and prints what it registers. SST's own program bundles and answers calls. */
const PROGRAM = `
import { createServer } from 'node:http';
import * as aws from '@pulumi/aws';
import * as pulumi from '@pulumi/pulumi';

const server = createServer(async (request, response) => {
  let body = '';
  for await (const part of request) body += part;
  const { method, params: [input] } = JSON.parse(body);
  const results = {
    'Runtime.Build': { handler: input.handler, out: process.cwd() + '/src', errors: [], sourcemaps: [] },
    'Provider.Aws.Bootstrap': { asset: 'assets', state: 'state' },
  };
  const error = method in results ? null : "rpc: can't find " + method;
  response.end(JSON.stringify({ result: results[method] ?? null, error }));
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
process.env.SST_SERVER = 'http://127.0.0.1:' + server.address().port;

const registered = [];
const calls = {
  'aws:cloudformation/getStack:getStack': () => ({ outputs: JSON.parse(process.env.OUTPUTS) }),
  'aws:index/getRegion:getRegion': () => ({ region: 'eu-west-1' }),
  'aws:index/getPartition:getPartition': () => ({ partition: 'aws' }),
  'aws:iam/getPolicyDocument:getPolicyDocument': (inputs) => ({ json: JSON.stringify(inputs) }),
};
await pulumi.runtime.setMocks({
  newResource: ({ type, name, inputs }) => {
    registered.push({ type, inputs });
    return { id: name, state: { name, arn: 'arn:' + name, functionUrl: 'https://orders', ...inputs } };
  },
  call: ({ token, inputs }) => calls[token]?.(inputs) ?? inputs,
}, 'shop', 'dev', false);
const paths = { root: process.cwd(), platform: process.cwd() + '/.sst/platform', work: process.cwd() + '/.sst' };
Object.assign(globalThis, {
  aws,
  $app: { name: 'shop', stage: 'dev', removal: 'remove', providers: {} },
  $cli: { command: 'deploy', paths, state: { version: {} } },
  $config: (config) => config,
  $util: pulumi,
  ...{ $dev: false, $output: pulumi.output, $resolve: pulumi.all, $jsonStringify: pulumi.jsonStringify },
  ...{ $interpolate: pulumi.interpolate, $concat: pulumi.concat },
});
globalThis.sst = await import('./src/components/index.ts');
const { default: config } = await import('../../sst.config.ts');
const { run } = await import('./src/auto/run.ts');
await pulumi.runtime.runInPulumiStack(() => run(config.run));
await pulumi.runtime.disconnect();
console.log(JSON.stringify(registered));
process.exit(0);
`;
