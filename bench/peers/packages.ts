import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { errorMessage } from '../../lambdas/runtime/base/errors.ts';
import manifest from '../../package.json' with { type: 'json' };

/** The version of the peer's packages, which are released together. */
export const PEER_VERSION = '2.0.3';

/** The peer: its bus, its outbox in DynamoDB, and its publisher to EventBridge. */
export const PEER_PACKAGES = [
  'outbox-event-bus',
  '@outbox-event-bus/dynamodb-aws-sdk-outbox',
  '@outbox-event-bus/eventbridge-publisher',
] as const;

/** SDK packages that the peer leaves to its user: installed in the versions that Mailroom is measured with. */
const SDK_PACKAGES = [
  '@aws-sdk/client-dynamodb',
  '@aws-sdk/client-eventbridge',
  '@aws-sdk/lib-dynamodb',
] as const;

/** The arguments of `npm`. No script of a package is run. */
const NPM_ARGUMENTS = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--save-exact'];

/** The packages to install, each as `name@version`; package.json pins exact ones. */
export function peerSpecs(): string[] {
  const sdk = SDK_PACKAGES.map((name) => `${name}@${manifest.devDependencies[name]}`);
  return [...PEER_PACKAGES.map((name) => `${name}@${PEER_VERSION}`), ...sdk];
}

/** The lines that are printed instead of figures without `--install`. */
export function installPlan(): string[] {
  return [
    'nothing was measured, because the peer is not a dependency of this repository. With --install, this part runs',
    `  npm ${[...NPM_ARGUMENTS, ...peerSpecs()].join(' ')}`,
    'in a temporary folder, which it deletes at the end. Add --packages <folder> to take the peer from .tgz files,',
    'e.g. of `pnpm pack` in its repository, where the registry does not have it.',
  ];
}

/**
 * Installs the peer in a temporary folder while `use` runs.
 *
 * @param packages - a folder with a `.tgz` file of each of the peer's packages @default the registry
 * @throws Error if `npm` fails, or if another version than {@link PEER_VERSION} was installed
 */
export async function withPeer<T>(
  packages: string | undefined,
  use: (folder: string) => Promise<T>,
): Promise<T> {
  return inTemporaryFolder(async (folder) => {
    await install(folder, packages);
    for (const name of PEER_PACKAGES) await expectVersion(folder, name);
    return await use(folder);
  });
}

/** Installs packages, each as `name@version`, in a temporary folder while `use` runs. No script of a package is run. */
export async function withPackages<T>(
  specs: readonly string[],
  use: (folder: string) => Promise<T>,
): Promise<T> {
  return inTemporaryFolder(async (folder) => {
    await promisify(execFile)('npm', [...NPM_ARGUMENTS, ...specs], { cwd: folder });
    return await use(folder);
  });
}

async function inTemporaryFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'mailroom-peers-'));
  try {
    await writeFile(join(folder, 'package.json'), '{ "private": true }\n');
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function install(folder: string, packages: string | undefined): Promise<void> {
  const specs = peerSpecs();
  const wanted =
    packages === undefined ? specs : [...(await packedFiles(packages)), ...specs.slice(PEER_PACKAGES.length)];
  try {
    await promisify(execFile)('npm', [...NPM_ARGUMENTS, ...wanted], { cwd: folder });
  } catch (error) {
    throw new Error(
      `npm did not install ${PEER_PACKAGES[0]}@${PEER_VERSION}: ${npmError(error)}. If the registry does not have a package, ` +
        'give a folder with .tgz files of the peer by --packages <folder>.',
    );
  }
}

/** The first error that `npm` printed with a description, e.g. `404 Not Found - GET …`. */
function npmError(error: unknown): string {
  const { stderr = '' } = error as { stderr?: string };
  const lines = [...stderr.matchAll(/^npm error (?!code )(.+)$/gm)].map(([, line]) => line);
  return lines[0] ?? errorMessage(error);
}

async function packedFiles(packages: string): Promise<string[]> {
  const files = (await readdir(packages)).filter((file) => file.endsWith('.tgz'));
  if (files.length === PEER_PACKAGES.length) return files.map((file) => resolve(packages, file));
  throw new Error(
    `The folder ${packages} has ${files.length} .tgz files. It must have one for each of ${PEER_PACKAGES.join(', ')}.`,
  );
}

async function expectVersion(folder: string, name: string): Promise<void> {
  const manifest = await readFile(join(folder, 'node_modules', name, 'package.json'), 'utf8');
  const { version } = JSON.parse(manifest) as { version: string };
  if (version !== PEER_VERSION)
    throw new Error(`${name} ${version} was installed instead of ${PEER_VERSION}.`);
}
