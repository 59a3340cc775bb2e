import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { MailroomError } from '../lambdas/runtime/errors.ts';
import { answersAs, poll, tail } from './health.ts';
import { endGroup } from './process-group.ts';
import { ensureEnvironment } from './python-environment.ts';
import { LOCAL_ACCOUNT, LOCAL_REGION, localFile, projectRoot } from './workspace.ts';

/** How long MiniStack may take until it answers. It needs two seconds on a laptop. */
const READY_DEADLINE_MS = 60_000;

/** What {@link runMiniStack} needs to know. */
export interface MiniStackOptions {
  readonly port: number;
  /** The Python to install it with. */
  readonly python: string;
  /** Whether it goes on when this process ends. */
  readonly detached: boolean;
  readonly onProgress?: ((line: string) => void) | undefined;
}

/** The process of a MiniStack that answers. */
export interface MiniStackProcess {
  /** The process that leads its group. */
  readonly pid: number;
  /** A text in its command line that no other process has. */
  readonly mark: string;
  /** Where it unpacks the code of the functions. */
  readonly tempDir: string;
}

/** Where MiniStack's output goes: its own, and that of the functions it runs. */
export function logFile(port: number): string {
  return localFile(`engine-${port}.log`);
}

/**
 * Starts MiniStack on the loopback address and waits until it answers.
 *
 * @throws `PYTHON_ENVIRONMENT` when it cannot be installed
 * @throws `ENGINE_START` when it ends or does not answer in a minute, with the end of its log
 */
export async function runMiniStack(options: MiniStackOptions): Promise<MiniStackProcess> {
  const { port, python, detached, onProgress } = options;
  const interpreter = await ensureEnvironment({ python, ...(onProgress && { onProgress }) });
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

/** Ends a MiniStack and the processes of its functions, and removes the code that it unpacked. */
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
  const script = join(projectRoot, 'localstack', 'engine.py');
  const child = spawn(interpreter, [script, mark, ...(detached ? [] : ['--with-parent'])], {
    cwd: localFile('.'),
    env: engineEnvironment(port, mark, tempDir),
    // A group of its own, so that it can be ended together with the processes of the functions.
    detached: true,
    stdio: [detached ? 'ignore' : 'pipe', log, log],
  });
  // Neither the process nor the pipe by which it notices our end may keep us from ending.
  child.unref();
  (child.stdin as (NodeJS.WritableStream & { unref?: () => void }) | null)?.unref?.();
  child.on('error', () => {});
  return child;
}

/** Of the caller's environment, what MiniStack and the functions need to run at all. */
const INHERITED = ['LANG', 'LC_ALL', 'TZ'] as const;

/**
 * MiniStack hands its own environment on to the functions it runs, so this is theirs too: the Node that we run on ourselves, and
 * nothing of the caller's. A function is code that somebody may have put there, and a developer's environment holds credentials,
 * tokens, and options that make Node load other code.
 */
function engineEnvironment(port: number, mark: string, tempDir: string): Record<string, string | undefined> {
  return {
    ...Object.fromEntries(INHERITED.map((name) => [name, process.env[name]])),
    PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
    PYTHONUTF8: '1',
    // Neither the profiles in ~/.aws nor anything else at home is found by looking there.
    HOME: tempDir,
    BIND_HOST: '127.0.0.1',
    GATEWAY_PORT: String(port),
    // The host of the queue URLs it hands out; `localhost` may mean ::1, where it does not listen.
    MINISTACK_HOST: '127.0.0.1',
    // Said on its health page: how we know our engine from one that another process starts on the same port.
    MINISTACK_EDITION: mark,
    MINISTACK_REGION: LOCAL_REGION,
    MINISTACK_ACCOUNT_ID: LOCAL_ACCOUNT,
    LAMBDA_EXECUTOR: 'local',
    // Idle processes of a function that was busy go after this long; each holds some 75 MB.
    LAMBDA_WARM_TTL_SECONDS: '30',
    // It would open ports of its own for MQTT and SFTP, the same ones in every engine.
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
 * A folder for the code that it unpacks. Not inside the project: functions would find the project's modules, and
 * its `"type": "module"`, which AWS does not have.
 */
function makeTempDir(port: number): string {
  const dir = mkdtempSync(join(tmpdir(), `mailroom-${port}-`));
  writeFileSync(join(dir, 'package.json'), '{ "type": "commonjs" }');
  return dir;
}

function startFailed(port: number, state: string | undefined): MailroomError {
  const what =
    state === 'ended' ? 'ended before it answered' : `did not answer within ${READY_DEADLINE_MS / 1_000} s`;
  return new MailroomError(
    'ENGINE_START',
    `The local AWS (MiniStack) on port ${port} ${what}. The end of its log, ${logFile(port)}:\n${tail(logFile(port))}\n` +
      'Another port can be chosen with --port or MAILROOM_PORT.',
  );
}
