import { execFile } from 'node:child_process';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { buildFunctions } from '../../build-functions.ts';
import { BUNDLE_BANNER } from '../../lib/bundle-banner.ts';

/** The zips of the functions, by the names that the Terraform configuration gives them. */
export interface ExampleCode {
  readonly folder: string;
  readonly zips: Readonly<Record<'stream_relay' | 'sweep' | 'audit' | 'place_order' | 'receipts', string>>;
}

/** Builds Mailroom's functions as the package has them, and the handlers of the examples; zips all of them. */
export async function exampleCode(python: string): Promise<ExampleCode> {
  const folder = await mkdtemp(join(tmpdir(), 'mailroom-examples-'));
  await buildFunctions(folder);
  await build({
    entryPoints: ['examples/handlers/src/place-order.ts', 'examples/handlers/src/receipts.ts'],
    outdir: folder,
    entryNames: '[name]/index',
    outExtension: { '.js': '.mjs' },
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    mainFields: ['module', 'main'],
    banner: { js: BUNDLE_BANNER },
    alias: { 'cdk-mailroom/runtime': './lambdas/runtime/index.ts' },
    logLevel: 'error',
  });
  const zip = async (name: string) => {
    const file = join(folder, `${name}.zip`);
    // Python is there because the local AWS needs it; Node.js writes no zip.
    await promisify(execFile)(python, ['-m', 'zipfile', '-c', file, join(folder, name, 'index.mjs')]);
    return file;
  };
  return {
    folder,
    zips: {
      stream_relay: await zip('relay-stream'),
      sweep: await zip('relay-sweep'),
      audit: await zip('audit'),
      place_order: await zip('place-order'),
      receipts: await zip('receipts'),
    },
  };
}
