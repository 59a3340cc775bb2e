import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { Code } from 'aws-cdk-lib/aws-lambda';
import type { BundlingOptions } from 'aws-cdk-lib/aws-lambda-nodejs';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  lambdaEntry,
  RUNTIME,
  ServiceFunction,
  type ServiceFunctionProps,
} from '../../lib/functions/service-function.ts';
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

describe('a function whose code is built elsewhere', () => {
  const made = (props: Partial<ServiceFunctionProps>) =>
    new ServiceFunction(new Stack(new App({ analyticsReporting: false }), 'Stack'), 'Bank', {
      service: 'bank',
      ...props,
    });
  const code = Code.fromInline('exports.handler = () => {}');
  const entry = lambdaEntry('example/bank/handler');

  test('is not bundled, and has the handler that its props name', () => {
    const handlers = [{ code }, { code, handler: 'bank.charge' }].map((props) =>
      Object.values(Template.fromStack(Stack.of(made(props))).findResources('AWS::Lambda::Function')).map(
        ({ Properties }) => [Properties.Handler, Properties.Code.ZipFile],
      ),
    );
    const text = 'exports.handler = () => {}';
    expect(handlers).toEqual([[['index.handler', text]], [['bank.charge', text]]]);
  });

  test.each<[string, Partial<ServiceFunctionProps>, string]>([
    ['neither entry nor code', {}, 'entry and code are missing'],
    ['entry, and code', { entry, code }, 'entry is given with code or handler'],
    ['entry, and handler', { entry, handler: 'index.handler' }, 'entry is given with code or handler'],
    ['code, and bundling', { code, bundling: {} }, 'bundling is given, but code is built already'],
    ['an entry that does not exist', { entry: 'src/none.ts' }, 'has no such file'],
  ])('is refused with %s', (_what, props, problem) => {
    expect(() => made(props)).toThrow(problem);
  });
});

test('the runtime has no SnapStart: once it has, measure a function with it', () => {
  expect(RUNTIME.supportsSnapStart).toBe(false);
});
