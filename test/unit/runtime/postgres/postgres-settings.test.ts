import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readPostgresSettings } from '../../../../lambdas/runtime/postgres/postgres-settings.ts';
import { tlsOption } from '../../../../lambdas/runtime/postgres/postgres-url.ts';

const read = (value: string) => readPostgresSettings({ MAILROOM_POSTGRES: value });
const json = (more: object) =>
  read(JSON.stringify({ host: 'db.aws', database: 'shop', user: 'orders', ...more }));

describe('the address of the database', () => {
  test('is read from a URL, whose parts may be encoded; it is encrypted except on the loopback address', () => {
    expect(read('postgresql://o%40x:p%2F@127.0.0.1:6000/shop')).toEqual({
      host: '127.0.0.1',
      port: 6000,
      database: 'shop',
      user: 'o@x',
      password: 'p/',
      ssl: false,
    });
    expect(read('postgres://orders@db.aws/shop')).toMatchObject({ port: 5_432, ssl: true });
    expect(read('postgres://orders@db.aws/shop?sslmode=disable')).toMatchObject({ ssl: false });
  });

  test('is an IPv6 address without its brackets', () => {
    expect(read('postgresql://u@[::1]/d')).toMatchObject({ host: '::1', ssl: false });
    expect(read('postgresql://u@[2001:db8::1]:6000/d')).toMatchObject({ host: '2001:db8::1', ssl: true });
  });

  test('decides how the connection is encrypted and verified', () => {
    const tls = (query: string) => tlsOption(read(`postgresql://u@localhost/d?${query}`));
    expect(tls('')).toBe(false);
    expect(tls('sslmode=disable')).toBe(false);
    expect(tls('sslmode=require')).toEqual({ rejectUnauthorized: true });
    expect(tls('sslmode=verify-full&sslrootcert=system')).toEqual({ rejectUnauthorized: true });
    const notHost = { rejectUnauthorized: true, checkServerIdentity: expect.any(Function) };
    expect(tls('sslmode=verify-ca')).toEqual(notHost);
    const file = join(import.meta.dirname, 'postgres-settings.test.ts');
    const own = { rejectUnauthorized: true, ca: expect.stringContaining('decides how') };
    expect(tls(`sslrootcert=${file}`)).toEqual(own);
    expect(tls(`sslmode=verify-ca&sslrootcert=${file}`)).toEqual({ ...own, ...notHost });
  });

  test('is read from JSON', () => {
    expect(json({ port: 6000, iam: true })).toEqual({
      host: 'db.aws',
      port: 6000,
      database: 'shop',
      user: 'orders',
      iam: true,
      ssl: true,
    });
    expect(json({ secretArn: 'arn' })).toMatchObject({ secretArn: 'arn', port: 5_432 });
  });

  test.each([
    ['a missing variable', () => readPostgresSettings({}), 'not a postgresql:// URL'],
    ['another URL', () => read('https://x'), 'not a postgresql:// URL'],
    ['broken JSON', () => read('{"host'), 'not a valid JSON object'],
    ['a missing user', () => json({ user: undefined }), 'user must be a non-empty string'],
    ['an empty database', () => read('postgres://u@h'), 'database must be a non-empty string'],
    [
      'a lone % in the password',
      () => read('postgresql://u:p%zz@h/d'),
      'password has a % that two hexadecimal',
    ],
    [
      'a lone % in the database',
      () => read('postgresql://u:p@h/d%'),
      'database has a % that two hexadecimal',
    ],
    [
      'another host',
      () => read('postgresql://u@localhost/d?host=db.aws'),
      'parameter "host" is not supported: write',
    ],
    [
      'options',
      () => read('postgresql://u@h/d?options=-c%20a=b'),
      'parameter "options" is not supported: set it',
    ],
    ['another parameter', () => read('postgresql://u@h/d?sslcert=x'), 'parameter "sslcert" is not supported'],
    ['a weak sslmode', () => read('postgresql://u@h/d?sslmode=prefer'), 'sslmode must be verify-full'],
    ['an sslmode of pg', () => read('postgresql://u@h/d?sslmode=no-verify'), 'sslmode must be verify-full'],
    ['an empty sslmode', () => read('postgresql://u@h/d?sslmode='), 'sslmode must be verify-full'],
    ['two modes', () => read('postgresql://u@h/d?sslmode=disable&sslmode=require'), 'sslmode must be'],
    [
      'a missing certificate',
      () => read('postgresql://u@h/d?sslrootcert=/none.pem'),
      'cannot be read (ENOENT)',
    ],
    [
      'an unused certificate',
      () => read('postgresql://u@h/d?sslmode=disable&sslrootcert=/a'),
      'other than disable',
    ],
    ['an unknown member', () => json({ sslmode: 'disable' }), 'member "sslmode" is not supported'],
    ['a bad port', () => json({ port: 70_000 }), 'port must be a whole number from 1 to 65535'],
    ['a bad flag', () => json({ iam: 'yes' }), 'iam must be true or false'],
    ['a bad secret', () => json({ secretArn: 7 }), 'secretArn must be a non-empty string'],
    ['two ways to log in', () => json({ iam: true, secretArn: 'arn' }), 'exclude each other'],
  ])('%s is refused with the name of the field', (_what, reading, problem) => {
    expect(reading).toThrow(
      expect.objectContaining({ code: 'BAD_POSTGRES', message: expect.stringContaining(problem) }),
    );
  });

  test('an error does not repeat a password', () => {
    expect(() => read('https://user:hunter2@host')).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('hunter2') }),
    );
  });
});
