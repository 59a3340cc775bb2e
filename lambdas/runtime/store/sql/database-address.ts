import { readFileSync } from 'node:fs';
import type { Environment } from '../../base/config-codec.ts';
import { MailroomError } from '../../base/errors.ts';
import { jsonObject } from '../../base/json.ts';

/** The encryption of a connection. */
export interface DatabaseTls {
  /** Encrypt the connection and verify the certificate of the server. @default true, except on the loopback address */
  readonly ssl: boolean;
  /** Certificates of the authorities to trust, PEM. @default those of Node.js */
  readonly ca?: string | undefined;
  /** Verify that the certificate is that of the host. A tunnel has another name. @default true */
  readonly verifyHost?: boolean | undefined;
}

/** The address of a database, and how to log in. */
export interface DatabaseAddress extends DatabaseTls {
  readonly host: string;
  /** 1 to 65,535. @default 5432 of PostgreSQL, 3306 of MySQL */
  readonly port: number;
  readonly database: string;
  readonly user: string;
  /** For a local database. @default none */
  readonly password?: string | undefined;
  /** The secret of Secrets Manager that contains `password`, and may contain `username`. @default none */
  readonly secretArn?: string | undefined;
  /** Log in with a token of IAM. @default false */
  readonly iam?: boolean | undefined;
}

/** The parts of the URL of a database. */
export interface DatabaseUrl extends Partial<DatabaseTls> {
  readonly host: string;
  readonly port: string | undefined;
  readonly database: string | undefined;
  readonly user: string | undefined;
  readonly password: string | undefined;
}

/** Makes an error of a problem. It never contains the value, which may contain a password. */
export type BadAddress = (problem: string) => MailroomError;

/** The form of the addresses of one kind of server. */
export interface AddressForm {
  /** The variable that has the address. */
  readonly variable: string;
  /** The code of its errors. */
  readonly code: 'BAD_POSTGRES' | 'BAD_MYSQL';
  readonly port: number;
  /** The scheme of its URLs. */
  readonly scheme: string;
  /** Other schemes that mean the same. */
  readonly alias?: string;
  /** Reads the encryption from the parameters of a URL. What it cannot honor, it refuses. */
  readonly tlsIn: (parameters: URLSearchParams, bad: BadAddress) => Partial<DatabaseTls>;
}

/** Returns true if a host is this machine: only a tunnel or a local server is there. */
export function isLoopback(host: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|::1)$/.test(host);
}

/**
 * Reads the URL of a database.
 *
 * @throws the error that `bad` makes
 */
export function readDatabaseUrl(form: AddressForm, value: string, bad: BadAddress): DatabaseUrl {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || ![form.scheme, form.alias].includes(url.protocol.slice(0, -1)))
    throw bad(`it is not a ${form.scheme}:// URL`);
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
    ...form.tlsIn(url.searchParams, bad),
  };
}

/**
 * Reads the address of a database from its variable: a URL, or JSON as the constructs write it.
 *
 * @throws the code of the form, naming the field
 */
export function readDatabaseAddress(form: AddressForm, env: Environment): DatabaseAddress {
  const { variable, code, scheme } = form;
  // Without the value, which may contain a password.
  const bad: BadAddress = (problem) =>
    new MailroomError(
      code,
      `${variable} cannot be used: ${problem}. Set it to ${scheme}://<user>@<host>:<port>/<database>, or to JSON with host, port, database, user ` +
        'and iam, secretArn or password.',
    );
  const value = env[variable] ?? '';
  const given: Record<string, unknown> = value.startsWith('{')
    ? ofJson(value, bad)
    : { ...readDatabaseUrl(form, value, bad) };
  const { host, database, user, password, secretArn, iam, ssl, ca, verifyHost } = given;
  const port = Number(given.port ?? form.port);
  for (const [name, member] of Object.entries({ host, database, user }))
    if (typeof member !== 'string' || member === '') throw bad(`${name} must be a non-empty string`);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw bad(`port must be a whole number from 1 to 65535, but it is ${port}`);
  const optional = Object.entries({ password, secretArn, ca }).filter(([, member]) => member !== undefined);
  for (const [name, member] of optional)
    if (typeof member !== 'string' || member === '') throw bad(`${name} must be a non-empty string`);
  for (const [name, member] of Object.entries({ iam, ssl, verifyHost }))
    if (member !== undefined && typeof member !== 'boolean') throw bad(`${name} must be true or false`);
  if (iam === true && secretArn !== undefined) throw bad('iam and secretArn exclude each other');
  const texts = { ...Object.fromEntries(optional), host, port, database, user };
  return { ...texts, iam, verifyHost, ssl: ssl ?? !isLoopback(String(host)) } as DatabaseAddress;
}

const MEMBERS = [
  'host',
  'port',
  'database',
  'user',
  'password',
  'secretArn',
  'iam',
  'ssl',
  'ca',
  'verifyHost',
];

function ofJson(value: string, bad: BadAddress): Record<string, unknown> {
  const given = jsonObject(value);
  if (given === undefined) throw bad('it is not a valid JSON object');
  const unknown = Object.keys(given).find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined) throw bad(`the member ${JSON.stringify(unknown)} is not supported`);
  return given;
}

/** Reads a file of certificates that a parameter names. */
export function certificates(parameter: string, file: string, bad: BadAddress): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw bad(`${parameter} names a file that cannot be read (${Object(error).code})`);
  }
}
