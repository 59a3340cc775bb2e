import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { HOUR_MS } from '../lambdas/runtime/base/units.ts';
import { type DeployProgress, deployProgress } from './deploy-progress.ts';
import { localCdk } from './local-cdk.ts';
import { localFile, projectRoot } from './workspace.ts';

/** Options of {@link assemblyOf}. */
export interface AssemblyOptions extends DeployProgress {
  /** The folder of the CDK app, which contains its `cdk.json`. @default the project */
  readonly appDir?: string | undefined;
  /** Context values beside the stage. @default none */
  readonly context?: Readonly<Record<string, string>> | undefined;
}

/** The sources of every app in the project, beside its own folder. The lock file stands for the packages. */
const SOURCES = ['bin', 'cdk.json', 'lambdas', 'lib', 'package-lock.json', 'tools', 'tsconfig.json'];

/**
 * Returns an app's assembly for the local stage, for `cdk deploy --app`. An app is synthesized again only if its sources have
 * changed: building its functions and templates takes ten times as long as deploying them.
 *
 * @returns the folder of the assembly
 * @throws `DEPLOY_FAILED` with the last lines of the CDK's output and the remedy
 *
 * @example
 * ```ts
 * const assembly = await assemblyOf({ onProgress: console.error });
 * ```
 */
export async function assemblyOf({
  appDir = projectRoot,
  context = {},
  ...progress
}: AssemblyOptions = {}): Promise<string> {
  const own = appDir === projectRoot ? [] : [relative(projectRoot, appDir)];
  const values = Object.entries(context).map(([name, value]) => `${name}=${value}`);
  // The assembly without them is kept, too.
  const prefix = `${values.length > 0 ? 'context-' : ''}assembly-${basename(appDir)}-`;
  const assembly = localFile(`${prefix}${await digestOf([...SOURCES, ...own], values)}`);
  if (existsSync(assembly)) return assembly;
  progress.onProgress?.('Building the functions and stacks');
  const written = await mkdtemp(localFile('synth-'));
  try {
    await localCdk({
      cwd: appDir,
      args: [
        ...['synth', '--quiet', '--all', '--output', written],
        ...['stage=local', ...values].flatMap((value) => ['--context', value]),
      ],
      onLine: deployProgress(progress),
    });
    await removeOlder(localFile('.'), prefix, basename(assembly));
    // Complete under its name, or not there at all: several processes may build it at once.
    await rename(written, assembly);
  } catch (error) {
    if (!existsSync(assembly)) throw error;
  } finally {
    await rm(written, { recursive: true, force: true });
  }
  return assembly;
}

/** A deployment reads its assembly for minutes. */
const READ_MS = HOUR_MS;

/**
 * Removes the assemblies of older sources. Another process may be deploying one: this one, if both have built it, or one that is young.
 *
 * @param folder - where assemblies are
 * @param prefix - of the names of an app's assemblies
 * @param own - the name of the one that replaces them
 */
export async function removeOlder(folder: string, prefix: string, own: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.startsWith(prefix) || name === own) continue;
    const path = join(folder, name);
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() })); // removed meanwhile
    if (Date.now() - mtimeMs > READ_MS) await rm(path, { recursive: true, force: true });
  }
}

/** A digest of every file below some folders of the project, of their names, and of some values. */
async function digestOf(sources: readonly string[], values: readonly string[]): Promise<string> {
  const hash = createHash('sha256').update(values.join('\0'));
  const files = await Promise.all(sources.map(filesOf));
  for (const file of files.flat()) hash.update(`${file}\0`).update(await readFile(join(projectRoot, file)));
  return hash.digest('hex').slice(0, 16);
}

async function filesOf(source: string): Promise<string[]> {
  const path = join(projectRoot, source);
  if (!(await stat(path)).isDirectory()) return [source];
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(projectRoot, join(entry.parentPath, entry.name)))
    .sort();
}
