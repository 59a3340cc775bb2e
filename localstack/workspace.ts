import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MailroomError } from '../lambdas/runtime/base/errors.ts';

/** The folder of this module, beside which the published package has the files of the engines too. */
const ownFolder = dirname(fileURLToPath(import.meta.url));

/** The root of the repository, absolute. */
export const projectRoot = dirname(ownFolder);

/** True in the repository, false in the installed package. */
const inRepository = import.meta.url.endsWith('.ts');

/** The user's cache: what is downloaded once for every clone and installed package, and outlives any `npm install`. */
function cacheDir(): string {
  const { XDG_CACHE_HOME = '' } = process.env;
  // A relative path is ignored, as the XDG specification requires: it would name another folder in every clone.
  return join(isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homedir(), '.cache'), 'mailroom');
}

/** The folder for the engine's logs, process files and deployments: git-ignored in the repository, in the cache for an installed package. */
const localDir = () => (inRepository ? join(projectRoot, '.local') : cacheDir());

/** The default port of the local AWS: LocalStack's, which most tools expect. */
export const DEFAULT_PORT = 4566;

/** The region of the local stage. */
export const LOCAL_REGION = 'us-east-1';

/** The account id of both engines. */
export const LOCAL_ACCOUNT = '000000000000';

/** The path of a file that an engine is started with. */
export function ownFile(name: 'compose.yml' | 'engine.py' | 'requirements.txt'): string {
  return join(ownFolder, name);
}

/** The path of a file in the folder for what engines write, which is created if missing. */
export function localFile(name: string): string {
  const dir = localDir();
  mkdirSync(dir, { recursive: true });
  return join(dir, name);
}

/**
 * The path of a file in the user's cache, which is created if missing. It is beside the logs if the user has no folder to write to, or if
 * another user could change the folder: the engine is code that runs as this user.
 *
 * @throws `PYTHON_ENVIRONMENT` in an installed package, whose logs are in that folder too
 */
export function cacheFile(name: string): string {
  try {
    const dir = cacheDir();
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    accessSync(dir, constants.W_OK);
    if (isOwn(dir)) return join(dir, name);
  } catch {
    return localFile(name); // read-only, or a user without a home folder
  }
  if (inRepository) return localFile(name);
  throw new MailroomError(
    'PYTHON_ENVIRONMENT',
    `The local AWS is not installed into ${cacheDir()}, because other users can change that folder. ` +
      'Set XDG_CACHE_HOME to a folder that only you can change.',
  );
}

/** Returns true for a folder of this user that not every user can change. */
function isOwn(dir: string): boolean {
  const { uid, mode } = statSync(dir);
  return process.getuid === undefined || (uid === process.getuid() && (mode & 0o002) === 0);
}

/**
 * Environment variables that point AWS SDKs and tools at a local engine: both endpoints (S3 has its own variable, because
 * `<bucket>.localhost` does not resolve everywhere), test credentials, the region, and no warning about the age of Node 20.
 *
 * @example
 * ```ts
 * Object.assign(process.env, localEnvironment('http://127.0.0.1:4566'));
 * ```
 */
export function localEnvironment(endpoint: string): Record<string, string> {
  return {
    AWS_ENDPOINT_URL: endpoint,
    AWS_ENDPOINT_URL_S3: endpoint,
    AWS_REGION: LOCAL_REGION,
    AWS_DEFAULT_REGION: LOCAL_REGION,
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
  };
}

/**
 * The environment of a child process, without any variable of the caller that could redirect it to a real account (`AWS_PROFILE`,
 * session tokens, config files) or change how Node.js runs.
 */
export function withoutAws(env: NodeJS.ProcessEnv): Record<string, string> {
  const kept = Object.entries(env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && !entry[0].startsWith('AWS_') && entry[0] !== 'NODE_OPTIONS',
  );
  return Object.fromEntries(kept);
}
