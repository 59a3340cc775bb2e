import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { App, Stack } from 'aws-cdk-lib';
import { beforeAll, describe, expect, test } from 'vitest';
import { FUNCTION_ENVIRONMENT, importTimes, withFiles } from '../../../bench/bundles/import-time.ts';
import { BUNDLING, lambdaEntry, ServiceFunction } from '../../../lib/functions/service-function.ts';
import { appFunctions, bundleFunction, type FunctionBundle } from '../../../tools/pack/function-bundle.ts';

/**
 * The most bytes of each function. Each is a few percent over what it has: what makes one grow by a library is a
 * decision, and raises its number here.
 */
const BYTES_MAX: Readonly<Record<string, number>> = {
  'relay-stream': 332_500,
  'relay-sweep': 457_500,
  audit: 481_500,
  bank: 243_000,
  'bridge-jet-stream': 704_500,
  'bridge-kafka': 762_500,
  'bridge-rabbit': 609_500,
  heartbeat: 403_500,
  inventory: 484_500,
  'mysql-api': 1_430_500, // as mysql-relay
  'mysql-audit': 1_581_500, // as mysql-relay
  'mysql-relay': 1_341_500, // the driver: 0.3 MB, its character sets 0.5, and its certificates 0.2
  'mysql-status': 1_479_500,
  notifications: 480_500,
  'orders-api': 386_500,
  'orders-status': 481_500,
  payments: 577_000,
  'postgres-api': 474_500,
  'postgres-audit': 612_500,
  'postgres-relay': 384_500,
  'postgres-status': 526_500,
  'shop-accept': 327_500,
  'shop-history': 471_000,
  'shop-invoices': 471_000,
  'shop-payments': 471_000,
};

/** The share of a bundle that the validators of its events may have: with all of zod in place of zod/mini it is more. */
const VALIDATOR_SHARE_MAX = 0.1;

const SDK_CLIENTS = { name: 'sdk-clients', entry: 'bench/bundles/sdk-clients.handler.ts' };

const functions = appFunctions();
const bundles = new Map<string, FunctionBundle>();

beforeAll(async () => {
  const made = await Promise.all([SDK_CLIENTS, ...functions].map((entry) => bundleFunction(entry)));
  for (const bundle of made) bundles.set(bundle.name, bundle);
});

function bundleOf(name: string): FunctionBundle {
  const bundle = bundles.get(name);
  if (bundle === undefined) throw new Error(`There is no bundle of ${name}`);
  return bundle;
}

function expectWithin({ name, bytes, packages }: FunctionBundle, bytesMax: number): void {
  const largest = packages.slice(0, 10).map((share) => `  ${share.bytes} ${share.name}`);
  expect(
    bytes,
    `The bundle of ${name} has ${bytes} bytes; its budget is ${bytesMax}. The largest in it:\n${largest.join('\n')}\n`,
  ).toBeLessThanOrEqual(bytesMax);
}

describe('the bundle of', () => {
  test('every function has a budget', () => {
    expect(functions.map(({ name }) => name)).toEqual(Object.keys(BYTES_MAX).sort());
  });

  test('relay-stream is smaller than the SDK clients alone, where nothing of these is left out', async () => {
    const { bytes } = await bundleFunction(SDK_CLIENTS, { external: [] });
    expectWithin(bundleOf('relay-stream'), bytes);
  });

  test.each(Object.entries(BYTES_MAX))('%s keeps its budget', (name, bytesMax) => {
    expectWithin(bundleOf(name), bytesMax);
  });

  test.each(functions.map(({ name }) => name))('%s is not duplicated by its validators', (name) => {
    const { bytes, packages } = bundleOf(name);
    const validators = packages.find((share) => share.name === 'zod')?.bytes ?? 0;
    expect(
      validators / bytes,
      `zod has ${validators} of the ${bytes} bytes of ${name}; its share may be ${VALIDATOR_SHARE_MAX}. Import zod/mini.`,
    ).toBeLessThanOrEqual(VALIDATOR_SHARE_MAX);
  });

  test('every function is imported with the environment of the benchmark', async () => {
    const times = await importTimes(
      functions.map(({ name }) => bundleOf(name)),
      0,
    );
    expect(times).toHaveLength(functions.length);
    for (const { wallMs } of times) expect(wallMs).toBeGreaterThan(0);
  });

  test.each(functions.map(({ name }) => name))('%s has nothing of the laptop in it', (name) => {
    const external = bundleOf(name).inputs.filter(
      (file) =>
        !(file.startsWith('lambdas/') || file.startsWith('node_modules/')) ||
        file.startsWith('testing/') ||
        /node_modules\/(?:aws-cdk-lib|constructs|esbuild|vitest|fast-check)\//.test(file),
    );
    expect(external, `${name} bundles what only runs on a laptop`).toEqual([]);
  });
});

describe('what a bundle leaves out', () => {
  test.each(functions.map(({ name }) => name))('%s asks for only where it has no credentials', (name) => {
    const { lazyImports } = bundleOf(name);
    expect(lazyImports.length).toBeGreaterThan(0);
    expect(BUNDLING.externalModules).toEqual(expect.arrayContaining([...new Set(lazyImports)]));
  });

  test('a client needs nothing of it: it signs with the credentials of the environment', async () => {
    const keys: string[] = [];
    const service = createServer((request, response) => {
      keys.push(/Credential=([^/]+)/.exec(request.headers.authorization ?? '')?.[1] ?? 'none');
      response.end('{}');
    }).listen(0, '127.0.0.1');
    await once(service, 'listening');
    try {
      await withFiles([bundleOf('sdk-clients')], async (folder) => {
        const file = pathToFileURL(join(folder, 'sdk-clients.mjs')).href;
        const call = `const { handler } = await import(${JSON.stringify(file)}); await handler();`;
        await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', call], {
          env: {
            ...FUNCTION_ENVIRONMENT,
            AWS_ACCESS_KEY_ID: 'OFTHEROLE',
            AWS_ENDPOINT_URL: `http://127.0.0.1:${(service.address() as AddressInfo).port}`,
          },
        });
      });
    } finally {
      service.close();
    }
    expect(keys).toEqual(['OFTHEROLE', 'OFTHEROLE', 'OFTHEROLE', 'OFTHEROLE']);
  });
});

test('what is measured is what ServiceFunction deploys', () => {
  const app = new App({ analyticsReporting: false });
  const stack = new Stack(app, 'Stack');
  new ServiceFunction(stack, 'Relay', { entry: lambdaEntry('relay-stream/handler'), service: 'relay' });
  // The asset is there before the app is synthesized, which would take seconds and is not what this is about.
  const assets = readdirSync(app.outdir).filter((name) => name.startsWith('asset.'));
  expect(assets).toHaveLength(1);
  const deployed = readFileSync(join(app.outdir, assets[0] ?? '', 'index.mjs'), 'utf8');
  const measured = Buffer.from(bundleOf('relay-stream').code).toString('utf8');
  const withoutMapName = (code: string) => code.replace(/^\/\/# sourceMappingURL=.*$/m, '');
  expect(withoutMapName(deployed) === withoutMapName(measured)).toBe(true);
});
