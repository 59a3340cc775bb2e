import { mkdir, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { step } from './step.ts';

/** The folder of the repository. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The package as it is published. */
export interface Tarball {
  /** Where the `.tgz` is. */
  readonly file: string;
  /** Where it is unpacked: below the repository, whose packages stand in for those that npm would install. */
  readonly unpacked: string;
  /** Every file in it, by its path in the package. */
  readonly files: readonly string[];
  /** Its package.json. */
  readonly manifest: Manifest;
}

/** What the tests read of a package.json. */
interface Manifest {
  readonly version: string;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional?: boolean }>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, { readonly module?: string }>>;
  readonly [member: string]: unknown;
}

/** Makes a folder below the repository, for {@link pack}. */
export async function packageFolder(): Promise<string> {
  await mkdir(join(ROOT, '.local'), { recursive: true });
  return mkdtemp(join(ROOT, '.local', 'package-'));
}

/**
 * Compiles, packs and unpacks the package.
 *
 * @param folder - below the repository: takes the `.tgz` and what was unpacked
 */
export async function pack(folder: string): Promise<Tarball> {
  await step(ROOT, 'npm', ['run', '--silent', 'compile']);
  const unpacked = join(folder, 'node_modules', 'cdk-mailroom');
  await mkdir(unpacked, { recursive: true });
  // Ends the repository's own scope: inside of it, `cdk-mailroom` would be the repository.
  await writeFile(join(folder, 'package.json'), '{ "private": true }');
  await step(ROOT, 'npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder]);
  const [name = ''] = (await readdir(folder)).filter((entry) => entry.endsWith('.tgz'));
  const file = join(folder, name);
  await step(folder, 'tar', ['-xzf', file, '-C', unpacked, '--strip-components=1']);
  const entries = await readdir(unpacked, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(unpacked.length + 1));
  const manifest = JSON.parse(await readFile(join(unpacked, 'package.json'), 'utf8')) as Manifest;
  return { file, unpacked, files: files.sort(), manifest };
}
