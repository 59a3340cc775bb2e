import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { relaySettings } from '../../lambdas/runtime/base/config.ts';
import { BUNDLING } from '../../lib/service-function.ts';
import { RELAY_CONFIG } from './events.ts';
import type { StubContents } from './stub.child.ts';

/** The approximate length of the session token in a function's credentials. */
const SESSION_TOKEN = 'stub'.repeat(200);

const OUT = fileURLToPath(new URL('../../.local/bench/', import.meta.url));

/** The bundled file of each started program. */
const bundles = new Map<string, Promise<string>>();

/** A stub of the services in a separate process. */
export interface Stub {
  readonly endpoint: string;
  stop(): Promise<void>;
}

/** Starts a stub. */
export function startStub(contents: StubContents): Promise<Stub> {
  return startServer('stub', contents);
}

/** Starts the server `<name>.child.ts`. @param name - relative to this folder */
export async function startServer(name: 'stub' | '../peers/tables', contents: object): Promise<Stub> {
  const child = await start(name, [JSON.stringify(contents)], [], {});
  const { endpoint } = (await message(child)) as Pick<Stub, 'endpoint'>;
  return {
    endpoint,
    stop: async () => {
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
    },
  };
}

/** A program with a function's environment, in a process of its own. */
export interface Child {
  /** Sends a message, and returns the answer. */
  ask<T>(message: object): Promise<T>;
  stop(): Promise<void>;
}

/** Starts `bench/relay/<name>.child.ts` in a fresh process with a function's environment. */
export async function startChild(name: string, endpoint: string, task: object): Promise<Child> {
  const child = await start(name, [JSON.stringify(task)], [], functionEnvironment(endpoint));
  return {
    ask: async <T>(wanted: object) => {
      const answered = message(child);
      child.send(wanted);
      return (await answered) as T;
    },
    stop: async () => {
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
    },
  };
}

/** The programs that {@link runChild} starts, relative to this folder. */
type ChildName = 'footprint' | 'drain' | '../peers/mailroom' | '../peers/outbox-event-bus';

/** Runs `<name>.child.ts` in a fresh process with a function's environment. @returns its answer */
export async function runChild<T>(
  name: ChildName,
  endpoint: string,
  task: object,
  flags: readonly string[] = [],
): Promise<T> {
  const child = await start(name, [JSON.stringify(task)], flags, functionEnvironment(endpoint));
  const ended = once(child, 'exit');
  const result = await message(child);
  await ended;
  return result as T;
}

function functionEnvironment(endpoint: string): NodeJS.ProcessEnv {
  return {
    ...relaySettings.encode(RELAY_CONFIG),
    AWS_ENDPOINT_URL: endpoint,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'stub',
    AWS_SECRET_ACCESS_KEY: 'stub',
    AWS_SESSION_TOKEN: SESSION_TOKEN,
    AWS_LAMBDA_FUNCTION_NAME: 'relay',
    POWERTOOLS_SERVICE_NAME: 'mailroom-relay',
  };
}

async function start(
  name: string,
  args: readonly string[],
  flags: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<ChildProcess> {
  const file = bundles.get(name) ?? bundle(name);
  bundles.set(name, file);
  // Its logs and metrics are written, as in Lambda, and discarded.
  return spawn(process.execPath, [...flags, await file, ...args], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...process.env, ...env },
  });
}

async function message(child: ChildProcess): Promise<unknown> {
  const heard = new AbortController();
  const ended = once(child, 'exit', heard).then(([code]) => {
    throw new Error(`A process of the benchmark exited with ${code} without a result`);
  });
  ended.catch(() => undefined); // a failure after the answer must not end this process
  const [said] = await Promise.race([once(child, 'message', heard), ended]);
  heard.abort();
  return said;
}

/** Bundled like a function's code, except for readable names in profiles, and for the local Node.js version. */
async function bundle(name: string): Promise<string> {
  const outfile = `${OUT}${name}.mjs`;
  await build({
    entryPoints: [fileURLToPath(new URL(`${name}.child.ts`, import.meta.url))],
    outfile,
    bundle: true,
    platform: 'node',
    target: `node${process.versions.node}`,
    format: BUNDLING.format,
    mainFields: [...BUNDLING.mainFields],
    external: [...BUNDLING.externalModules],
    banner: { js: BUNDLING.banner },
    logLevel: BUNDLING.logLevel,
  });
  return outfile;
}
