import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createConnection } from 'mysql2/promise';
import { errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import { freePort } from '../../../localstack/free-port.ts';
import { poll } from '../../../localstack/health.ts';
import { type Broker, brokerOf } from '../../brokers/servers/broker.ts';
import { copyFolder, logOf, ownDir } from '../../brokers/servers/broker-files.ts';
import { unpackedOnce } from '../../brokers/servers/debian-packages.ts';

/** The server and its libraries. Debian replaces a package by a security update of the same release: `*`. */
const PACKAGES = ['mariadb-server-core=1:10.11.*', 'liburing2=2.3-*', 'libaio1=0.3.113-*'];

/** A server recovers within seconds; this long only on a machine that does something else. */
const RESTART_MAX_MS = 300_000;

/** The ids of Debian's `nobody`: `mariadbd` does not run as root. */
const NOBODY = 65_534;

/** A MariaDB on the loopback address, whose superuser `root` needs no password. */
export interface MariadbServer extends Broker {
  readonly port: number;
  /** Starts it after a crash, as soon as its old process has ended. */
  readonly recover: () => Promise<void>;
}

/** The folder of the unpacked packages, with an initialized data folder to copy. */
const DATA = 'initialized';

/** Scripts of the package that make its system tables. */
const SYSTEM_TABLES = [
  'mysql_system_tables.sql',
  'mysql_performance_tables.sql',
  'mysql_system_tables_data.sql',
];

/** Options of every server of the tests. A small log makes its data folder small. */
const OPTIONS = ['--no-defaults', '--innodb-log-file-size=16M', '--skip-name-resolve'];

const isRoot = process.getuid?.() === 0;

/** A server that starts deletes every temporary table in its folder, also those of a server that runs: no two share one. */
function commandOf(root: string, data: string, ...args: string[]) {
  const unprivileged = isRoot ? ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : [];
  const [command = '', ...rest] = [
    ...unprivileged,
    join(root, 'usr/sbin/mariadbd'),
    ...OPTIONS,
    `--datadir=${data}`,
    `--tmpdir=${data}`,
    `--lc-messages-dir=${join(root, 'usr/share/mysql')}`,
    `--plugin-dir=${join(root, 'usr/lib/mysql/plugin')}`,
    ...args,
  ];
  return { command, args: rest };
}

async function environmentOf(root: string): Promise<Record<string, string>> {
  const libraries = join(root, 'usr/lib');
  const [folder = ''] = (await readdir(libraries)).filter((name) => name.endsWith('-linux-gnu'));
  return { PATH: process.env.PATH ?? '', TZ: 'UTC', LD_LIBRARY_PATH: join(libraries, folder) };
}

async function own(dir: string): Promise<string> {
  await mkdir(dir, { recursive: true });
  if (isRoot) await chown(dir, NOBODY, NOBODY);
  return dir;
}

async function initialize(root: string): Promise<void> {
  const data = await own(join(root, DATA));
  const scripts = SYSTEM_TABLES.map((name) => readFile(join(root, 'usr/share/mysql', name), 'utf8'));
  const { command, args } = commandOf(root, data, '--bootstrap');
  const server = spawn(command, args, { env: await environmentOf(root), stdio: ['pipe', 'ignore', 'pipe'] });
  const said = text(server.stderr);
  server.stdin.end(
    `create database if not exists mysql;\nuse mysql;\nSET @auth_root_socket=NULL;\n${(await Promise.all(scripts)).join('')}`,
  );
  const [code] = await once(server, 'exit');
  if (code !== 0)
    throw new Error(`MariaDB could not initialize its data: it ended with ${code}.\n${await said}`);
}

/**
 * Starts a MariaDB on the loopback address, which is downloaded once. It ends with this process, however that ends.
 *
 * @param name - names its folder and its log
 * @param settings - of the server, such as `sql-mode`
 */
export async function startMariadb(
  name: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<MariadbServer> {
  const root = await unpackedOnce('mariadb', PACKAGES, initialize);
  const dir = await own(await ownDir(name));
  const data = join(dir, 'data');
  await copyFolder(join(root, DATA), data);
  const port = await freePort();
  const options = { 'bind-address': '127.0.0.1', port: String(port), socket: join(dir, 's'), ...settings };
  const broker = brokerOf({
    dir,
    command: {
      ...commandOf(root, data, ...Object.entries(options).map(([key, value]) => `--${key}=${value}`)),
      cwd: dir,
      env: await environmentOf(root),
      log: logOf(name),
    },
    connect: async () => {
      const connection = await createConnection({ host: '127.0.0.1', port, user: 'root' });
      await connection.end();
    },
  });
  await broker.start();
  return {
    ...broker,
    port,
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
      if (!started) throw new Error(`MariaDB could not be restarted: ${errorMessage(last)}`);
    },
  };
}
