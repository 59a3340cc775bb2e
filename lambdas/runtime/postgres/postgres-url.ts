import { readFileSync } from 'node:fs';
import type { MailroomError } from '../base/errors.ts';

/** The encryption of a connection. */
export interface PostgresTls {
  /** Encrypt the connection and verify the certificate of the server. @default true, except on the loopback address */
  readonly ssl: boolean;
  /** Certificates of the authorities to trust, PEM. @default those of Node.js */
  readonly ca?: string | undefined;
  /** Verify that the certificate is that of the host. A tunnel has another name. @default true */
  readonly verifyHost?: boolean | undefined;
}

/** The parts of a `postgresql://` URL. */
export interface PostgresUrl extends Partial<PostgresTls> {
  readonly host: string;
  readonly port: string | undefined;
  readonly database: string | undefined;
  readonly user: string | undefined;
  readonly password: string | undefined;
}

/** Makes an error of a problem. It never contains the value, which may contain a password. */
export type BadUrl = (problem: string) => MailroomError;

/** Returns true if a host is this machine: only a tunnel or a local server is there. */
export function isLoopback(host: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|::1)$/.test(host);
}

/**
 * Reads a `postgresql://` URL as libpq does. What it cannot honor, it refuses.
 *
 * @throws the error that `bad` makes
 */
export function readPostgresUrl(value: string, bad: BadUrl): PostgresUrl {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || !/^postgres(ql)?:$/.test(url.protocol)) throw bad('it is not a postgresql:// URL');
  const part = (name: string, text: string) => {
    try {
      return text === '' ? undefined : decodeURIComponent(text);
    } catch {
      throw bad(`${name} has a % that two hexadecimal digits must follow. Write a % itself as %25`);
    }
  };
  return {
    host: part('host', url.hostname)?.replace(/^\[(.*)\]$/, '$1') ?? '',
    port: part('port', url.port),
    database: part('database', url.pathname.slice(1)),
    user: part('user', url.username),
    password: part('password', url.password),
    ...tlsIn(url.searchParams, bad),
  };
}

function tlsIn(parameters: URLSearchParams, bad: BadUrl): Partial<PostgresTls> {
  for (const name of parameters.keys())
    if (name !== 'sslmode' && name !== 'sslrootcert')
      throw bad(`the parameter ${JSON.stringify(name)} is not supported${REMEDIES[name] ?? ''}`);
  const [mode, more] = parameters.getAll('sslmode');
  const file = parameters.get('sslrootcert');
  const how = mode === undefined ? {} : MODES[mode];
  if (how === undefined || more !== undefined)
    throw bad(
      'sslmode must be verify-full, verify-ca, require (which also verifies the certificate) or disable',
    );
  if (file === null || file === 'system') return how;
  if (how.ssl === false) throw bad('sslrootcert needs an sslmode other than disable');
  return { ...how, ssl: true, ca: certificates(file, bad) };
}

/** `allow`, `prefer` and `no-verify` would send a password to a server that nothing has verified. */
const MODES: Readonly<Record<string, Partial<PostgresTls>>> = {
  disable: { ssl: false },
  require: { ssl: true },
  'verify-ca': { ssl: true, verifyHost: false },
  'verify-full': { ssl: true },
};

const REMEDIES: Readonly<Record<string, string>> = {
  host: ': write the host before the path',
  port: ': write the port after the host',
  options: ': set it on the login with ALTER ROLE … SET',
};

function certificates(file: string, bad: BadUrl): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw bad(`sslrootcert names a file that cannot be read (${Object(error).code})`);
  }
}

/** The option `ssl` of `pg`. */
export function tlsOption({ ssl, ca, verifyHost = true }: PostgresTls) {
  if (!ssl) return false;
  return {
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca }),
    ...(!verifyHost && { checkServerIdentity: () => undefined }),
  };
}
