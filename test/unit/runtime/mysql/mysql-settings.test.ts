import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readMysqlRelayConfig, readMysqlSettings } from '../../../../lambdas/runtime/mysql/mysql-settings.ts';
import { tlsOption } from '../../../../lambdas/runtime/mysql/mysql-url.ts';

const read = (value: string) => readMysqlSettings({ MAILROOM_MYSQL: value });

describe('the address of a MySQL database', () => {
  test('is read from a URL, whose parts may be encoded; it is encrypted except on the loopback address', () => {
    expect(read('mysql://o%40x:p%2F@127.0.0.1:6000/shop')).toEqual({
      host: '127.0.0.1',
      port: 6000,
      database: 'shop',
      user: 'o@x',
      password: 'p/',
      ssl: false,
    });
    expect(read('mariadb://orders@db.aws/shop')).toMatchObject({ port: 3_306, ssl: true });
  });

  test('is read from JSON', () => {
    const address = { host: 'db.aws', database: 'shop', user: 'orders', iam: true };
    expect(read(JSON.stringify(address))).toEqual({ ...address, port: 3_306, ssl: true });
  });

  test('decides how the connection is encrypted and verified', () => {
    const tls = (query: string) => tlsOption(read(`mysql://u@localhost/d?${query}`)).ssl;
    const verified = { rejectUnauthorized: true, verifyIdentity: true };
    expect(tls('')).toBeUndefined();
    expect(tls('ssl-mode=DISABLED')).toBeUndefined();
    expect(tls('ssl-mode=required')).toEqual(verified);
    expect(tls('ssl-mode=VERIFY_IDENTITY')).toEqual(verified);
    expect(tls('ssl-mode=VERIFY_CA')).toEqual({ rejectUnauthorized: true, verifyIdentity: false });
    const file = join(import.meta.dirname, 'mysql-settings.test.ts');
    expect(tls(`ssl-ca=${file}`)).toEqual({ ...verified, ca: expect.stringContaining('decides how') });
  });

  test.each([
    ['a missing variable', '', 'not a mysql:// URL'],
    ['the URL of another database', 'postgresql://u@h/d', 'not a mysql:// URL'],
    ['a missing database', 'mysql://u@h', 'database must be a non-empty string'],
    ['another parameter', 'mysql://u@h/d?charset=utf8', 'parameter "charset" is not supported'],
    ['a weak mode', 'mysql://u@h/d?ssl-mode=PREFERRED', 'ssl-mode must be VERIFY_IDENTITY'],
    ['two modes', 'mysql://u@h/d?ssl-mode=REQUIRED&ssl-mode=DISABLED', 'ssl-mode must be VERIFY_IDENTITY'],
    ['a missing certificate', 'mysql://u@h/d?ssl-ca=/none.pem', 'cannot be read (ENOENT)'],
    ['an unused certificate', 'mysql://u@h/d?ssl-mode=DISABLED&ssl-ca=/a', 'other than DISABLED'],
  ])('%s is refused with the name of the field', (_what, value, problem) => {
    expect(() => read(value)).toThrow(
      expect.objectContaining({ code: 'BAD_MYSQL', message: expect.stringContaining(problem) }),
    );
  });

  test('an error does not repeat a password', () => {
    expect(() => read('https://user:hunter2@host')).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('hunter2') }),
    );
  });
});

test('a relay refuses a claim that is neither of the two, and an unknown order', () => {
  const env = {
    MAILROOM_TABLE: 'shop',
    MAILROOM_BUS: 'shop',
    MAILROOM_CLAIM_LEASE_MS: '30000',
    MAILROOM_PUBLISH_TIMEOUT_MS: '5000',
    MAILROOM_MAX_ATTEMPTS: '10',
    MAILROOM_PUBLISHED_RETENTION_DAYS: '7',
    MAILROOM_SOURCES: '[]',
    MAILROOM_POLL_MS: '500',
  };
  expect(readMysqlRelayConfig(env).claim).toBeUndefined();
  expect(readMysqlRelayConfig({ ...env, MAILROOM_CLAIM: 'token' }).claim).toBe('token');
  expect(() => readMysqlRelayConfig({ ...env, MAILROOM_CLAIM: 'guess' })).toThrow('MAILROOM_CLAIM');
  expect(readMysqlRelayConfig({ ...env, MAILROOM_ORDER_BY: 'aggregate' }).orderBy).toBe('aggregate');
  expect(() => readMysqlRelayConfig({ ...env, MAILROOM_ORDER_BY: 'time' })).toThrow('MAILROOM_ORDER_BY');
});
