import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { step } from './step.ts';

/** The folder of the repository. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The two packages that the repository publishes. */
export interface Packages {
  /** `cdk-mailroom`. */
  readonly library: Tarball;
  /** `@cdk-mailroom/cli`. */
  readonly command: Tarball;
}

/** A package as it is published. */
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
  readonly name: string;
  readonly version: string;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly bin: Readonly<Record<string, string>>;
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
 * Builds the packages in a copy of the repository that has only its files: `dist` and `.local` do not exist. Then unpacks them.
 *
 * @param folder - below the repository: receives the copy and the unpacked packages
 */
export async function pack(folder: string): Promise<Packages> {
  const copy = await freshCopy(join(folder, 'copy'));
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  await step(copy, 'npm', ['run', '--silent', 'build']);
  return await unpack(copy, folder);
}

/** Copies the files of the repository that git tracks or would add. */
async function freshCopy(folder: string): Promise<string> {
  const listed = await step(ROOT, 'git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard']);
  const files = [...new Set(listed.split('\0'))].filter(
    (file) => file !== '' && existsSync(join(ROOT, file)),
  );
  for (const file of files) await cp(join(ROOT, file), join(folder, file));
  return folder;
}

/**
 * Clones the last commit and runs the commands that docs/getting-started.md gives for the clone: with its own packages, as for a
 * stranger.
 *
 * @param folder - is made, outside the repository
 */
export async function buildClone(folder: string): Promise<string> {
  await step(ROOT, 'git', ['clone', '--quiet', ROOT, folder]);
  await step(folder, 'npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error']);
  await step(folder, 'npm', ['run', 'build']);
  return folder;
}

/**
 * Unpacks what `npm run build` wrote.
 *
 * @param built - the folder of the repository in which it ran
 * @param folder - below the repository: receives the unpacked packages
 */
export async function unpack(built: string, folder: string): Promise<Packages> {
  await mkdir(folder, { recursive: true });
  // Ends the repository's own scope: inside of it, `cdk-mailroom` would be the repository.
  await writeFile(join(folder, 'package.json'), '{ "private": true }');
  const { version } = JSON.parse(await readFile(join(built, 'package.json'), 'utf8')) as Manifest;
  const packed = (name: string) => join(built, '.local', `${name}-${version}.tgz`);
  return {
    library: await unpackOne(packed('cdk-mailroom'), folder, 'cdk-mailroom'),
    command: await unpackOne(packed('cdk-mailroom-cli'), folder, '@cdk-mailroom/cli'),
  };
}

async function unpackOne(file: string, folder: string, name: string): Promise<Tarball> {
  const unpacked = join(folder, 'node_modules', name);
  await mkdir(unpacked, { recursive: true });
  await step(folder, 'tar', ['-xzf', file, '-C', unpacked, '--strip-components=1']);
  const entries = await readdir(unpacked, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(unpacked.length + 1));
  const manifest = JSON.parse(await readFile(join(unpacked, 'package.json'), 'utf8')) as Manifest;
  return { file, unpacked, files: files.sort(), manifest };
}
