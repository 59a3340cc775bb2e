import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { errorCode, MailroomError } from '../lambdas/runtime/base/errors.ts';
import { lastLines } from './health.ts';
import { cacheFile, ownFile } from './workspace.ts';

const run = promisify(execFile);

/** The Python commands to try, best first. */
const PYTHONS = ['python3', 'python3.13', 'python3.12', 'python3.11', 'python3.10'];

/** The oldest Python that MiniStack runs on: 3.10. */
const PYTHON_MINOR_MIN = 10;

const INSTALL_TIMEOUT_MS = 300_000;

/** The requirements of MiniStack, each file pinned by its hash. */
const requirementsFile = ownFile('requirements.txt');

/**
 * Finds a Python that can run MiniStack.
 *
 * @param commands - the commands to try
 * @returns the first command that is Python 3.10 or later, or undefined
 */
export async function findPython(commands: readonly string[] = PYTHONS): Promise<string | undefined> {
  for (const command of commands) {
    try {
      const { stdout } = await run(command, ['-c', 'import sys; print(*sys.version_info[:2])']);
      const [major = 0, minor = 0] = stdout.trim().split(' ').map(Number);
      if (major === 3 && minor >= PYTHON_MINOR_MIN) return command;
    } catch {
      // Missing, or a launcher without a Python: try the next one.
    }
  }
  return undefined;
}

/**
 * The path of a requirements file's virtual environment. Its name contains the hash of that file, so a different list is a
 * different environment. An environment with this name is complete, because it only gets the name after a successful
 * installation.
 */
export async function environmentDir(requirements: string = requirementsFile): Promise<string> {
  const hash = createHash('sha256')
    .update(await readFile(requirements))
    .digest('hex');
  return cacheFile(`python-${hash.slice(0, 16)}`);
}

/** Options of {@link ensureEnvironment}. */
export interface EnvironmentOptions {
  /** The Python to create it with, from {@link findPython}. */
  readonly python: string;
  /** @default the project's own `requirements.txt` */
  readonly requirements?: string;
  /** A module that a complete environment can import. @default 'ministack' */
  readonly proof?: string;
  readonly onProgress?: (line: string) => void;
}

/**
 * Creates the virtual environment if it is missing, and returns its Python. The environment is created under a temporary name and
 * renamed once it is complete, so that an interrupted installation never looks complete and two concurrent installations do not
 * collide.
 *
 * @returns the path of the environment's Python
 * @throws `PYTHON_ENVIRONMENT` if it cannot be created, with the last lines of the output and the remedy
 */
export async function ensureEnvironment(options: EnvironmentOptions): Promise<string> {
  const { python, requirements = requirementsFile, proof = 'ministack' } = options;
  const dir = await environmentDir(requirements);
  if (await isWhole(dir, proof)) return pythonIn(dir);

  await removeLeftovers();
  const building = `${dir}.building-${randomBytes(6).toString('hex')}`;
  options.onProgress?.('Installing the local AWS (MiniStack, only the first time on this machine)');
  try {
    await run(python, ['-m', 'venv', building], { env: pythonEnvironment(), timeout: INSTALL_TIMEOUT_MS });
    await run(
      pythonIn(building),
      // Wheels only: building a source package would run tools that no hash covers.
      [
        '-m',
        'pip',
        'install',
        '--no-input',
        '--no-compile', // Python compiles what it imports
        '--only-binary',
        ':all:',
        '--require-hashes',
        '-r',
        requirements,
      ],
      { env: pythonEnvironment(), timeout: INSTALL_TIMEOUT_MS, maxBuffer: 16 * 1024 * 1024 },
    );
    await takeName(building, dir, proof);
  } catch (error) {
    await rm(building, { recursive: true, force: true });
    throw installFailed(python, error);
  }
  return pythonIn(dir);
}

/** The environment of the engine's Python: the caller's, without variables that would redirect Python. */
function pythonEnvironment(): Record<string, string | undefined> {
  const { PYTHONHOME: _home, PYTHONPATH: _path, ...env } = process.env;
  return { ...env, PIP_USER: '0', PIP_DISABLE_PIP_VERSION_CHECK: '1', PYTHONUTF8: '1' };
}

async function takeName(building: string, dir: string, proof: string): Promise<void> {
  // An existing environment of this name is either complete, made by another process, or broken by a change of Python.
  if (existsSync(dir) && !(await isWhole(dir, proof))) await rm(dir, { recursive: true, force: true });
  try {
    await rename(building, dir);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST'].includes(errorCode(error))) throw error;
    await rm(building, { recursive: true, force: true });
  }
}

async function isWhole(dir: string, proof: string): Promise<boolean> {
  if (!existsSync(pythonIn(dir))) return false;
  try {
    await run(pythonIn(dir), ['-c', `import ${proof}`], { env: pythonEnvironment() });
    return true;
  } catch {
    return false;
  }
}

/** Removes what interrupted installations left. Another container may share the cache, so a process id tells nothing. */
async function removeLeftovers(): Promise<void> {
  const cache = cacheFile('.');
  for (const name of (await readdir(cache)).filter((entry) => entry.includes('.building-'))) {
    const { mtimeMs } = await stat(join(cache, name)).catch(() => ({ mtimeMs: Date.now() })); // finished meanwhile
    // The installation has two steps.
    if (Date.now() - mtimeMs > 2 * INSTALL_TIMEOUT_MS)
      await rm(join(cache, name), { recursive: true, force: true });
  }
}

function pythonIn(dir: string): string {
  return join(dir, 'bin', 'python');
}

function installFailed(python: string, cause: unknown): MailroomError {
  const { stdout = '', stderr = '' } = cause as { stdout?: string; stderr?: string };
  const output = lastLines(`${stdout}\n${stderr}`) || `  ${String(cause)}`;
  return new MailroomError(
    'PYTHON_ENVIRONMENT',
    `The local AWS could not be installed with ${python}:\n${output}\n` +
      'If it says that venv or ensurepip is missing, install it (Debian, Ubuntu: apt install python3-venv). If the ' +
      'package index cannot be reached, check the network or the index that pip is set to. Then run the same ' +
      'command again.',
    { cause },
  );
}
