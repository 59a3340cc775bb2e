import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App, Stack } from 'aws-cdk-lib';
import type { BundlingOptions } from 'aws-cdk-lib/aws-lambda-nodejs';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { lambdaEntry, RUNTIME, ServiceFunction } from '../../lib/service-function.ts';
import { localFile } from '../../localstack/workspace.ts';

vi.setConfig({ testTimeout: 300_000 });

const dirs: string[] = [];

afterEach(() => {
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true });
});

/** Bundles one function into a new folder below another. @returns the folder of its asset, and the asset's name with its hash */
function bundled(below: string, bundling?: BundlingOptions): { readonly dir: string; readonly name: string } {
  const outdir = mkdtempSync(join(below, 'cdk out-'));
  dirs.push(outdir);
  const app = new App({ outdir, analyticsReporting: false });
  new ServiceFunction(new Stack(app, 'Stack'), 'Bank', {
    entry: lambdaEntry('example/bank/handler'),
    service: 'bank',
    ...(bundling && { bundling }),
  });
  app.synth();
  const assets = readdirSync(outdir).filter((name) => /^asset\.[0-9a-f]{64}$/.test(name));
  expect(assets).toHaveLength(1);
  const [name = ''] = assets;
  return { dir: join(outdir, name), name };
}

describe('the bundle of a function', () => {
  test('a bundle is the same in every output folder, and its source map names sources from the root', () => {
    const far = bundled(tmpdir());
    expect(bundled(localFile('.')).name).toBe(far.name);
    const { sources } = JSON.parse(readFileSync(join(far.dir, 'index.mjs.map'), 'utf8'));
    expect(sources).toContain('lambdas/example/bank/handler.ts');
    expect(sources.filter((source: string) => !/^(lambdas|node_modules)\//.test(source))).toEqual([]);
  });

  test('a bundle runs the hooks of its owner and may have no source map', () => {
    const { dir } = bundled(tmpdir(), {
      sourceMap: false,
      commandHooks: {
        beforeBundling: () => [],
        beforeInstall: () => [],
        afterBundling: (_inputDir, outputDir) => [`echo hello > "${join(outputDir, 'hello.txt')}"`],
      },
    });
    expect(readdirSync(dir).sort()).toEqual(['hello.txt', 'index.mjs']);
  });
});

test('the runtime has no SnapStart: once it has, measure a function with it', () => {
  expect(RUNTIME.supportsSnapStart).toBe(false);
});
