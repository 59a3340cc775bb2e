import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { MailroomError } from '../lambdas/runtime/base/errors.ts';
import { answersAs, poll, tail } from './health.ts';
import { endGroup } from './process-group.ts';
import { ensureEnvironment } from './python-environment.ts';
import { LOCAL_ACCOUNT, LOCAL_REGION, localFile, ownFile } from './workspace.ts';

/** The longest time until MiniStack answers. It needs two seconds on a laptop. */
const READY_DEADLINE_MS = 60_000;

/** Options of {@link runMiniStack}. */
export interface MiniStackOptions {
  readonly port: number;
  /** The Python to install it with. */
  readonly python: string;
  /** Keeps it running when this process ends. */
  readonly detached: boolean;
  readonly onProgress?: ((line: string) => void) | undefined;
}

/** The process of a running MiniStack. */
export interface MiniStackProcess {
  /** The id of the process that leads its group. */
  readonly pid: number;
  /** A text that appears in no other process's command line. */
  readonly mark: string;
  /** The folder to which it unpacks the code of the functions. */
  readonly tempDir: string;
}

/** The path of the log with the output of MiniStack and its functions. */
export function logFile(port: number): string {
  return localFile(`engine-${port}.log`);
}

/**
 * Starts MiniStack on the loopback address and waits until it answers.
 *
 * @throws `PYTHON_ENVIRONMENT` if it cannot be installed
 * @throws `ENGINE_START` if it exits or does not answer within a minute, with the last lines of its log
 */
export async function runMiniStack(options: MiniStackOptions): Promise<MiniStackProcess> {
  const { port, python, detached, onProgress } = options;
  const interpreter = await ensureEnvironment({ python, ...(onProgress && { onProgress }) });
  onProgress?.(`Starting the local AWS (MiniStack) on port ${port}`);
  const mark = `mailroom-${randomUUID()}`;
  const tempDir = makeTempDir(port);
  const child = launch({ interpreter, mark, port, tempDir, detached });
  const endpoint = `http://127.0.0.1:${port}`;
  const state = await poll(READY_DEADLINE_MS, async () => {
    if (child.exitCode !== null || child.signalCode !== null) return 'ended';
    return (await answersAs(endpoint, mark)) ? 'ready' : undefined;
  });
  const { pid } = child;
  if (state !== 'ready' || pid === undefined) {
    if (pid !== undefined) await endMiniStack({ pid, tempDir });
    throw startFailed(port, state);
  }
  return { pid, mark, tempDir };
}

/** Stops a MiniStack and the processes of its functions, and removes the code that it unpacked. */
export async function endMiniStack(process: { pid: number; tempDir: string }): Promise<void> {
  await endGroup(process.pid);
  rmSync(process.tempDir, { recursive: true, force: true });
}

interface Launch {
  readonly interpreter: string;
  readonly mark: string;
  readonly port: number;
  readonly tempDir: string;
  readonly detached: boolean;
}

function launch({ interpreter, mark, port, tempDir, detached }: Launch): ChildProcess {
  const log = openSync(logFile(port), 'w');
  const script = ownFile('engine.py');
  const child = spawn(interpreter, [script, mark, ...(detached ? [] : ['--with-parent'])], {
    cwd: localFile('.'),
    env: engineEnvironment(port, mark, tempDir),
    // In its own process group, so that it can be stopped together with the processes of its functions.
    detached: true,
    stdio: [detached ? 'ignore' : 'pipe', log, log],
  });
  // Neither the child nor the pipe through which it detects the end of this process may keep this process alive.
  child.unref();
  (child.stdin as (NodeJS.WritableStream & { unref?: () => void }) | null)?.unref?.();
  child.on('error', () => {});
  return child;
}

/** The subset of the caller's environment that MiniStack and the functions need. */
const INHERITED = ['LANG', 'LC_ALL', 'TZ'] as const;

/**
 * MiniStack passes its environment on to the functions. They run on the same Node.js as this process and get nothing else from
 * the caller: a function may contain third-party code, and a developer's environment contains credentials, tokens, and options
 * that make Node.js load other code.
 */
function engineEnvironment(port: number, mark: string, tempDir: string): Record<string, string | undefined> {
  return {
    ...Object.fromEntries(INHERITED.map((name) => [name, process.env[name]])),
    PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
    PYTHONUTF8: '1',
    // Keeps it and the functions from finding the profiles in ~/.aws, or anything else in the home folder.
    HOME: join(tempDir, 'home'),
    BIND_HOST: '127.0.0.1',
    GATEWAY_PORT: String(port),
    // The host of the queue URLs it returns; `localhost` may mean ::1, where it does not listen.
    MINISTACK_HOST: '127.0.0.1',
    // Shown on its health page; distinguishes this engine from one that another process starts on the same port.
    MINISTACK_EDITION: mark,
    MINISTACK_REGION: LOCAL_REGION,
    MINISTACK_ACCOUNT_ID: LOCAL_ACCOUNT,
    LAMBDA_EXECUTOR: 'local',
    // Idle function processes end after this long; each uses some 75 MB.
    LAMBDA_WARM_TTL_SECONDS: '30',
    // Otherwise it would open the same ports for MQTT and SFTP in every engine.
    IOT_MTLS_ENABLED: '0',
    SFTP_ENABLED: '0',
    PERSIST_STATE: '0',
    LOG_LEVEL: 'INFO',
    TMPDIR: tempDir,
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
  };
}

/**
 * Creates the folder for unpacked code, with an empty home folder in it. It is outside the project: inside, functions would find the project's modules and its
 * `"type": "module"`, which AWS does not have.
 */
function makeTempDir(port: number): string {
  const dir = mkdtempSync(join(tmpdir(), `mailroom-${port}-`));
  writeFileSync(join(dir, 'package.json'), '{ "type": "commonjs" }');
  mkdirSync(join(dir, 'home'));
  return dir;
}

function startFailed(port: number, state: string | undefined): MailroomError {
  const what =
    state === 'ended' ? 'ended before it answered' : `did not answer within ${READY_DEADLINE_MS / 1_000} s`;
  return new MailroomError(
    'ENGINE_START',
    `The local AWS (MiniStack) on port ${port} ${what}. The last lines of its log, ${logFile(port)}:\n${tail(logFile(port))}\n` +
      'To use another port, set --port or MAILROOM_PORT.',
  );
}
