import {
  type AddressForm,
  type BadAddress,
  certificates,
  type DatabaseTls,
  type DatabaseUrl,
  readDatabaseUrl,
} from '../store/sql/database-address.ts';

/** The form of the address of a PostgreSQL database. */
export const POSTGRES_ADDRESS: AddressForm = {
  variable: 'MAILROOM_POSTGRES',
  code: 'BAD_POSTGRES',
  port: 5_432,
  scheme: 'postgresql',
  alias: 'postgres',
  tlsIn,
};

/**
 * Reads a `postgresql://` URL as libpq does. What it cannot honor, it refuses.
 *
 * @throws the error that `bad` makes
 */
export function readPostgresUrl(value: string, bad: BadAddress): DatabaseUrl {
  return readDatabaseUrl(POSTGRES_ADDRESS, value, bad);
}

function tlsIn(parameters: URLSearchParams, bad: BadAddress): Partial<DatabaseTls> {
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
  return { ...how, ssl: true, ca: certificates('sslrootcert', file, bad) };
}

/** `allow`, `prefer` and `no-verify` would send a password to a server that nothing has verified. */
const MODES: Readonly<Record<string, Partial<DatabaseTls>>> = {
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

/** The option `ssl` of `pg`. */
export function tlsOption({ ssl, ca, verifyHost = true }: DatabaseTls) {
  if (!ssl) return false;
  return {
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca }),
    ...(!verifyHost && { checkServerIdentity: () => undefined }),
  };
}
