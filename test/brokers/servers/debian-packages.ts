import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { errorCode } from '../../../lambdas/runtime/base/errors.ts';
import { filledOnce } from './broker-files.ts';

const run = promisify(execFile);

/** The release of Debian whose packages these are. */
const CODENAME = 'bookworm';

const ERLANG = '1:25.2.3+dfsg-1';

/** What `rabbitmq-server` depends on. */
const ERLANG_PARTS = [
  'asn1',
  'base',
  'crypto',
  'eldap',
  'ftp',
  'inets',
  'mnesia',
  'os-mon',
  'parsetools',
  'public-key',
  'runtime-tools',
  'ssl',
  'syntax-tools',
  'tftp',
  'tools',
  'xmerl',
];

/** Each package with its version. Debian replaces a package by a security update of the same version: `*`. */
const PACKAGES = [
  'nats-server=2.9.10-1*',
  'rabbitmq-server=3.10.8-1*',
  ...ERLANG_PARTS.map((part) => `erlang-${part}=${ERLANG}*`),
];

/** The release of `erts` in those packages. */
const ERTS = 'erts-13.1.5';

/** Debian's own `erl` expects Erlang in /usr/lib. */
const ERL = `#!/bin/sh
ROOTDIR=$(cd "$(dirname "$0")/../usr/lib/erlang" && pwd)
export ROOTDIR BINDIR="$ROOTDIR/${ERTS}/bin" EMU=beam PROGNAME=erl
exec "$BINDIR/erlexec" "$@"
`;

/** The programs in an unpacked folder. */
export interface DebianPrograms {
  readonly natsServer: string;
  /** The scripts of RabbitMQ: `rabbitmq-server`, `rabbitmqctl`. They find Erlang by `PATH`. */
  readonly rabbitScripts: string;
  /** The folder of `erl`, for `PATH`. */
  readonly erlangBin: string;
  readonly epmd: string;
}

/** The reason why these packages do not run here, or undefined. */
export async function whyNoDebian(): Promise<string | undefined> {
  const release = await readFile('/etc/os-release', 'utf8').catch(() => '');
  const [, codename = process.platform] = /^VERSION_CODENAME=(.*)$/m.exec(release) ?? [];
  if (codename !== CODENAME) return `the packages are those of Debian ${CODENAME}, and this is ${codename}`;
  return undefined;
}

/**
 * Downloads the packages and unpacks them into a folder of the project: nothing is installed, so root is not needed.
 *
 * @throws Error if a package cannot be downloaded, with the remedy
 */
export async function debianPrograms(): Promise<DebianPrograms> {
  const root = await unpackedOnce('debian', PACKAGES, async (dir) => {
    await mkdir(join(dir, 'bin'));
    await writeFile(join(dir, 'bin/erl'), ERL, { mode: 0o755 });
  });
  return {
    natsServer: join(root, 'usr/sbin/nats-server'),
    rabbitScripts: join(root, 'usr/lib/rabbitmq/lib/rabbitmq_server-3.10.8/sbin'),
    erlangBin: join(root, 'bin'),
    epmd: join(root, 'usr/lib/erlang', ERTS, 'bin/epmd'),
  };
}

/**
 * Downloads packages and unpacks them, only the first time.
 *
 * @param name - of the folder
 * @param packages - each with its version
 * @param complete - receives the folder with the unpacked files
 * @throws Error if a package cannot be downloaded, with the remedy
 */
export function unpackedOnce(
  name: string,
  packages: readonly string[],
  complete: (dir: string) => Promise<void>,
): Promise<string> {
  return filledOnce(name, packages.join('\n'), async (dir) => {
    const archives = join(dir, 'packages');
    await mkdir(archives);
    await download(packages, archives);
    for (const archive of await readdir(archives))
      await run('dpkg-deb', ['-x', join(archives, archive), dir]);
    await rm(archives, { recursive: true });
    await complete(dir);
  });
}

async function download(packages: readonly string[], cwd: string): Promise<void> {
  const get = () => run('apt-get', ['download', '-q', ...packages], { cwd });
  try {
    await get();
  } catch (first) {
    if (errorCode(first) === 'ENOENT')
      throw new Error('There is no apt-get on this Debian.', { cause: first });
    // The list of packages may be missing or old; only root may renew it.
    try {
      await run('apt-get', ['update', '-q']);
      await get();
    } catch (cause) {
      throw new Error(
        `The packages ${packages.join(', ')} could not be downloaded:\n${(cause as { stderr?: string }).stderr ?? cause}\n` +
          'Run "apt-get update" as root, then the tests again.',
        { cause },
      );
    }
  }
}
