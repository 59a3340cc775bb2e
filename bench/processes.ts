import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { relaySettings } from '../lambdas/runtime/base/config.ts';
import { bundleFunction } from '../tools/pack/function-bundle.ts';
import { RELAY_CONFIG } from './relay/measured-relay.ts';

/** The programs that run in their own processes: `<program>.child.ts`. */
type ServerProgram = 'relay/stub';
type ClientProgram = 'brokers/courier' | 'relay/carry';

const OUT = fileURLToPath(new URL('../.local/bench/', import.meta.url));

/** The bundled file of each started program. */
const bundles = new Map<string, Promise<string>>();

/** Starts a server. Its argument is `contents`, and its first message its endpoint. */
export async function startServer(program: ServerProgram, contents: object) {
  const child = await start(program, contents, {});
  const { endpoint } = (await message(child)) as { readonly endpoint: string };
  return { endpoint, stop: () => stop(child) };
}

/** Starts a program with a function's environment, which answers messages. */
export async function startChild(program: ClientProgram, endpoint: string, task: object) {
  const child = await start(program, task, functionEnvironment(endpoint));
  return {
    ask: async <T>(wanted: object) => {
      const answered = message(child);
      child.send(wanted);
      return (await answered) as T;
    },
    stop: () => stop(child),
  };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.disconnect();
  await ended;
}

function functionEnvironment(endpoint: string): NodeJS.ProcessEnv {
  return {
    ...relaySettings.encode(RELAY_CONFIG),
    AWS_ENDPOINT_URL: endpoint,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'stub',
    AWS_SECRET_ACCESS_KEY: 'stub',
    // About as long as the token in a function's credentials.
    AWS_SESSION_TOKEN: 'stub'.repeat(200),
    AWS_LAMBDA_FUNCTION_NAME: 'relay',
    POWERTOOLS_SERVICE_NAME: 'mailroom-relay',
  };
}

async function start(program: string, task: object, env: NodeJS.ProcessEnv): Promise<ChildProcess> {
  const file = bundles.get(program) ?? bundle(program);
  bundles.set(program, file);
  // Its logs and metrics are written, as in Lambda, and discarded.
  return spawn(process.execPath, [await file, JSON.stringify(task)], {
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
async function bundle(program: string): Promise<string> {
  const entry = { name: program, entry: `bench/${program}.child.ts` };
  const target = `node${process.versions.node}`;
  const { code } = await bundleFunction(entry, { minify: false, sourcemap: false, target });
  const file = `${OUT}${program}.mjs`;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, code);
  return file;
}
