import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The file beside bundles with the licenses of all packages that they contain. The licenses require it. */
export const LICENSES = 'THIRD-PARTY-LICENSES.txt';

/**
 * The licenses of the packages whose code is in bundles.
 *
 * @param inputs - the files that were bundled, relative to the root of the repository
 */
export async function licensesOf(inputs: readonly string[]): Promise<string> {
  const folders = inputs.flatMap((file) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? []);
  const licenses = await Promise.all([...new Set(folders)].sort().map(licenseOf));
  return licenses.join('\n');
}

async function licenseOf(folder: string): Promise<string> {
  const { name, version, license } = JSON.parse(await readFile(join(ROOT, folder, 'package.json'), 'utf8'));
  const file = readdirSync(join(ROOT, folder)).find((entry) => /^licen[cs]e(\.|$)/i.test(entry));
  const text = file === undefined ? '' : await readFile(join(ROOT, folder, file), 'utf8');
  return `== ${name} ${version}: ${license}\n\n${text}`;
}
