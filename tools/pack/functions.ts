import { mkdir, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NODE_MIN } from '../../lib/functions/function-props.ts';
import { bundleFunction, type FunctionBundle } from './function-bundle.ts';
import { LICENSES, licensesOf } from './licenses.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The functions of a Mailroom itself: folders of `lambdas/`, and of `dist/functions/`. */
export const BUILT_FUNCTIONS = [
  'relay-stream',
  'relay-sweep',
  'audit',
  'heartbeat',
  'mysql-audit',
  'mysql-relay',
  'postgres-audit',
  'postgres-relay',
] as const;

/**
 * Bundles Mailroom's functions for the constructs, SAM, Terraform and other tools: a folder each, with `index.mjs`
 * and its source map, which stack traces need.
 *
 * @param folder - the output folder
 *
 * @example
 * ```ts
 * await buildFunctions('dist/functions');
 * ```
 */
export async function buildFunctions(folder: string): Promise<void> {
  const inputs: string[] = [];
  for (const name of BUILT_FUNCTIONS) {
    await mkdir(join(folder, name), { recursive: true });
    inputs.push(...(await bundleInto(join(folder, name), `lambdas/${name}/handler.ts`)).inputs);
  }
  await writeFile(join(folder, LICENSES), await licensesOf(inputs));
}

async function bundleInto(folder: string, entry: string): Promise<FunctionBundle> {
  // It refers to its map by its own name. `function.runtime` may be the oldest that is supported.
  const bundle = await bundleFunction({ name: 'index', entry }, { target: `node${NODE_MIN}` });
  await writeWhole(join(folder, 'index.mjs'), bundle.code);
  await writeWhole(join(folder, 'index.mjs.map'), bundle.sourceMap);
  return bundle;
}

/** Writes a file that other processes may be reading or writing: they see all of it, or what was there before. */
async function writeWhole(file: string, content: Uint8Array): Promise<void> {
  const part = join(dirname(dirname(file)), `${basename(file)}.${process.pid}`); // not in the folder that is deployed
  await writeFile(part, content);
  await rename(part, file);
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await buildFunctions(process.argv[2] ?? join(ROOT, 'dist', 'functions'));
