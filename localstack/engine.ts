import { MailroomError } from '../lambdas/runtime/base/errors.ts';
import { awaitAnswer, type EngineKind, poll } from './health.ts';
import { dockerAnswers, startLocalStack, stopLocalStack } from './localstack.ts';
import { endMiniStack, logFile, type MiniStackProcess, runMiniStack } from './ministack.ts';
import { findPython } from './python-environment.ts';
import { DEFAULT_PORT } from './workspace.ts';

/** A running local AWS. */
export interface Engine {
  /** Its URL, e.g. `http://127.0.0.1:4566`. */
  readonly endpoint: string;
  readonly port: number;
  /** The engine's kind; `external` is the one at `AWS_ENDPOINT_URL`. */
  readonly kind: 'ministack' | 'localstack' | 'external';
  /** True if this call started it. An engine that was already running is never stopped. */
  readonly startedHere: boolean;
  /** Identifies its process; only for a process that this call started. */
  readonly process?: MiniStackProcess | undefined;
  /** The file with its output; only for a process that this call started. */
  readonly logFile?: string | undefined;
  /** Stops it and everything it runs if this call started it; otherwise does nothing. */
  stop(): Promise<void>;
}

/** Options of {@link startEngine}. */
export interface EngineOptions {
  /** The port to use, whatever the environment names. @default `MAILROOM_PORT`, else that of `AWS_ENDPOINT_URL`, else 4566 */
  readonly port?: number | undefined;
  /** Keeps the engine running when this process ends. @default false */
  readonly detached?: boolean;
  /** The environment to read `AWS_ENDPOINT_URL` and `MAILROOM_PORT` from. @default process.env */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The Python commands to try, best first. @default python3, then python3.13 down to python3.10 */
  readonly pythons?: readonly string[];
  /** The longest time until a server that accepts connections answers. @default 2 minutes */
  readonly answerMs?: number;
  /** Receives a line at each step that takes time. */
  readonly onProgress?: (line: string) => void;
}

/** The longest time until a server identifies itself as an engine: a starting one answers with errors first. */
const RECOGNISE_MS = 3_000;

/**
 * Finds or starts a local AWS: an engine already running on the port, or MiniStack (needs Python 3.10 or later), or LocalStack
 * Community (needs Docker). Without a port, from the caller or in `MAILROOM_PORT`, it takes the engine at `AWS_ENDPOINT_URL`.
 *
 * An engine started by this call ends with this process, however it ends, unless `detached` is set.
 *
 * A server that accepts connections but does not answer yet is waited for: it may be a starting engine.
 *
 * @throws `ENGINE_UNREACHABLE` if nothing answers at `AWS_ENDPOINT_URL`
 * @throws `PORT_IN_USE` if something that is not an engine listens on the port
 * @throws `NO_ENGINE` if there is neither a usable Python nor Docker
 * @throws `ENGINE_START`, `PYTHON_ENVIRONMENT` if the engine cannot be installed or started
 *
 * @example
 * ```ts
 * const engine = await startEngine({ onProgress: console.error });
 * try {
 *   await deployLocal({ endpoint: engine.endpoint });
 * } finally {
 *   await engine.stop();
 * }
 * ```
 */
export async function startEngine(options: EngineOptions = {}): Promise<Engine> {
  const env = options.env ?? process.env;
  const chosen = options.port ?? (env.MAILROOM_PORT === undefined ? undefined : parsePort(env.MAILROOM_PORT));
  const given = env.AWS_ENDPOINT_URL;
  // The variable may be that of a shell with another app's engine: a port that was chosen for Mailroom wins.
  if (given && chosen === undefined) return await externalEngine(given, options);

  const port = chosen ?? DEFAULT_PORT;
  const endpoint = `http://127.0.0.1:${port}`;
  const running = await runningEngine(endpoint, port, options);
  if (running) return running;

  const python = await findPython(options.pythons);
  if (python) return await startMiniStack({ ...options, endpoint, port, python });
  if (await dockerAnswers()) {
    options.onProgress?.('Starting the local AWS (LocalStack, in Docker)');
    await startLocalStack(port);
    const stop = async (): Promise<void> => await stopLocalStack(port);
    return { endpoint, port, kind: 'localstack', startedHere: true, stop };
  }
  throw new MailroomError(
    'NO_ENGINE',
    'No local AWS can be started: neither Python 3.10 or later (python3) nor a running Docker was found. Install ' +
      'one of them, or set AWS_ENDPOINT_URL to an engine that is already running.',
  );
}

/**
 * Parses a port number.
 *
 * @throws `BAD_PORT` if it is not one
 */
export function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port >= 1 && port <= 65_535) return port;
  throw new MailroomError(
    'BAD_PORT',
    `The port is "${text}", but must be a whole number from 1 to 65535. Correct --port or MAILROOM_PORT.`,
  );
}

async function externalEngine(given: string, patience: EngineOptions): Promise<Engine> {
  const endpoint = given.replace(/\/+$/, '');
  const url = /^https?:/.test(given) && URL.canParse(given) ? new URL(given) : undefined;
  const answer = url && (await awaitAnswer(endpoint, patience));
  if (!url || answer === 'nothing' || answer === 'silent') {
    throw new MailroomError(
      'ENGINE_UNREACHABLE',
      `AWS_ENDPOINT_URL is "${given}", but ${url ? 'nothing answers there' : 'that is not a URL'}. Start an ` +
        'engine there, or unset AWS_ENDPOINT_URL to start one automatically.',
    );
  }
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  return { endpoint, port, kind: 'external', startedHere: false, stop: async () => {} };
}

async function runningEngine(
  endpoint: string,
  port: number,
  patience: EngineOptions,
): Promise<Engine | undefined> {
  const answer = await recognize(endpoint, patience);
  if (answer === 'nothing') return undefined;
  if (answer === 'external' || answer === 'silent') {
    throw new MailroomError(
      'PORT_IN_USE',
      `Port ${port} is in use by something that is not a local AWS. Stop it, or choose another port with --port ` +
        `or MAILROOM_PORT, e.g. MAILROOM_PORT=${port + 1}.`,
    );
  }
  return { endpoint, port, kind: answer, startedHere: false, stop: async () => {} };
}

async function recognize(endpoint: string, patience: EngineOptions): Promise<EngineKind> {
  const known = await poll(RECOGNISE_MS, async () => {
    const answer = await awaitAnswer(endpoint, patience);
    return answer === 'external' ? undefined : answer;
  });
  return known ?? 'external';
}

async function startMiniStack(
  options: EngineOptions & { endpoint: string; port: number; python: string },
): Promise<Engine> {
  const { endpoint, port, python, onProgress } = options;
  try {
    const ministack = await runMiniStack({ port, python, detached: options.detached ?? false, onProgress });
    return {
      endpoint,
      port,
      kind: 'ministack',
      startedHere: true,
      process: ministack,
      logFile: logFile(port),
      stop: async () => await endMiniStack(ministack),
    };
  } catch (error) {
    // Another process may have started an engine on this port after the first check.
    const running = await runningEngine(endpoint, port, options);
    if (running) return running;
    throw error;
  }
}
