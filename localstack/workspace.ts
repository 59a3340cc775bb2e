import { accessSync, constants, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of this module, beside which the published package has the files of the engines too. */
const ownFolder = dirname(fileURLToPath(import.meta.url));

/** The root of the repository, absolute. */
export const projectRoot = dirname(ownFolder);

/** True in the repository, false in the installed package. */
const inRepository = import.meta.url.endsWith('.ts');

/** The user's cache: what is downloaded once for every clone and installed package, and outlives any `npm install`. */
const cacheDir = () => join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'mailroom');

/** The folder for the engine's logs, process files and deployments: git-ignored in the repository, in the cache for an installed package. */
const localDir = inRepository ? join(projectRoot, '.local') : cacheDir();

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
  mkdirSync(localDir, { recursive: true });
  return join(localDir, name);
}

/** The path of a file in the user's cache, which is created if missing; beside the logs if the user has no folder to write to. */
export function cacheFile(name: string): string {
  const dir = cacheDir();
  try {
    mkdirSync(dir, { recursive: true });
    accessSync(dir, constants.W_OK);
    return join(dir, name);
  } catch {
    return localFile(name);
  }
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
