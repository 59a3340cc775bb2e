import { describe, expect, test } from 'vitest';
import { readPostgresSettings } from '../../../../lambdas/runtime/postgres/postgres-settings.ts';

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
    ['a missing variable', () => readPostgresSettings({}), 'neither JSON nor a URL'],
    ['another URL', () => read('https://x'), 'neither JSON nor a URL'],
    ['broken JSON', () => read('{"host'), 'not valid JSON'],
    ['a missing user', () => json({ user: undefined }), 'user must be a non-empty string'],
    ['an empty database', () => read('postgres://u@h'), 'database must be a non-empty string'],
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
