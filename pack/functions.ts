import { readdirSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleFunction, type FunctionBundle } from '../bench/bundles/function-bundle.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));

/** The functions of a Mailroom itself: folders of `lambdas/`, and of `dist/functions/`. */
export const BUILT_FUNCTIONS = ['relay-stream', 'relay-sweep', 'audit', 'heartbeat'] as const;

/** Those that can be traced: their `traced.mjs` takes the place of `index.mjs`. */
const TRACED_FUNCTIONS: readonly string[] = ['relay-stream', 'relay-sweep'];

/** The file with the licences of all packages that the bundles contain. The licences require it. */
const LICENCES = 'THIRD-PARTY-LICENCES.txt';

/**
 * Bundles Mailroom's functions exactly as the constructs do, for SAM, Terraform and other tools: a folder each, with `index.mjs`
 * and its source map, which stack traces need. The relay's folders also have `traced.mjs`, with OpenTelemetry's spans.
 *
 * @param folder - the output folder
 *
 * @example
 * ```ts
 * await buildFunctions('dist/functions');
 * ```
 */
export async function buildFunctions(folder: string): Promise<void> {
  const packages = new Set<string>();
  for (const name of BUILT_FUNCTIONS) {
    await mkdir(join(folder, name), { recursive: true });
    const bundles = [await bundleInto(join(folder, name), 'index', `lambdas/${name}/handler.ts`)];
    if (TRACED_FUNCTIONS.includes(name))
      bundles.push(await bundleInto(join(folder, name), 'traced', `lambdas/${name}/traced.handler.ts`));
    for (const installed of bundles.flatMap(packageFolders)) packages.add(installed);
  }
  const licences = await Promise.all([...packages].sort().map(licenceOf));
  await writeFile(join(folder, LICENCES), licences.join('\n'));
}

async function bundleInto(folder: string, name: string, entry: string): Promise<FunctionBundle> {
  const bundle = await bundleFunction({ name, entry }); // it refers to its map by its own name
  await writeFile(join(folder, `${name}.mjs`), bundle.code);
  await writeFile(join(folder, `${name}.mjs.map`), bundle.sourceMap);
  return bundle;
}

/** The folders of the packages whose code is in a bundle. */
function packageFolders({ inputs }: FunctionBundle): string[] {
  return inputs.flatMap((file) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? []);
}

async function licenceOf(folder: string): Promise<string> {
  const { name, version, license } = JSON.parse(await readFile(join(ROOT, folder, 'package.json'), 'utf8'));
  const file = readdirSync(join(ROOT, folder)).find((entry) => /^licen[cs]e(\.|$)/i.test(entry));
  const text = file === undefined ? '' : await readFile(join(ROOT, folder, file), 'utf8');
  return `== ${name} ${version}: ${license}\n\n${text}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildFunctions(join(ROOT, 'dist', 'functions'));
