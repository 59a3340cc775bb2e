import {
  type AddressForm,
  type BadAddress,
  certificates,
  type DatabaseTls,
} from '../store/sql/database-address.ts';

/** The form of the address of a MySQL or MariaDB database. */
export const MYSQL_ADDRESS: AddressForm = {
  variable: 'MAILROOM_MYSQL',
  code: 'BAD_MYSQL',
  port: 3_306,
  scheme: 'mysql',
  alias: 'mariadb',
  tlsIn,
};

/** Reads the parameters `ssl-mode` and `ssl-ca` of MySQL's own clients. */
function tlsIn(parameters: URLSearchParams, bad: BadAddress): Partial<DatabaseTls> {
  for (const name of parameters.keys())
    if (name !== 'ssl-mode' && name !== 'ssl-ca')
      throw bad(`the parameter ${JSON.stringify(name)} is not supported`);
  const [mode, more] = parameters.getAll('ssl-mode');
  const file = parameters.get('ssl-ca');
  const how = mode === undefined ? {} : MODES[mode.toUpperCase()];
  if (how === undefined || more !== undefined)
    throw bad(
      'ssl-mode must be VERIFY_IDENTITY, VERIFY_CA, REQUIRED (which also verifies the certificate) or DISABLED',
    );
  if (file === null) return how;
  if (how.ssl === false) throw bad('ssl-ca needs an ssl-mode other than DISABLED');
  return { ...how, ssl: true, ca: certificates('ssl-ca', file, bad) };
}

/** `PREFERRED` would send a password to a server that nothing has verified. */
const MODES: Readonly<Record<string, Partial<DatabaseTls>>> = {
  DISABLED: { ssl: false },
  REQUIRED: { ssl: true },
  VERIFY_CA: { ssl: true, verifyHost: false },
  VERIFY_IDENTITY: { ssl: true },
};

/** The member `ssl` of the options of `mysql2`; none without encryption. */
export function tlsOption({ ssl, ca, verifyHost = true }: DatabaseTls) {
  if (!ssl) return {};
  return {
    ssl: { rejectUnauthorized: true as const, verifyIdentity: verifyHost, ...(ca !== undefined && { ca }) },
  };
}
