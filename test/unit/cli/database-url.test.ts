import { expect, test } from 'vitest';
import { databaseUrl } from '../../../cli/deployment/open-database.ts';

const MYSQL = 'mysql://ada@127.0.0.1';
const POSTGRES = 'postgresql://ada@127.0.0.1/shop';
const NAMES = ['DATABASE_URL', 'MAILROOM_MYSQL'];
const SCHEME = /^(mysql|mariadb):/i;

test.each([
  ['the option before any variable', POSTGRES, { DATABASE_URL: MYSQL }, POSTGRES],
  ['the variable of its kind', undefined, { DATABASE_URL: POSTGRES, MAILROOM_MYSQL: MYSQL }, MYSQL],
  [
    'the first one of its kind',
    undefined,
    { DATABASE_URL: 'mariadb://bo@db', MAILROOM_MYSQL: MYSQL },
    'mariadb://bo@db',
  ],
  ['the first one if none is of its kind', undefined, { DATABASE_URL: POSTGRES }, POSTGRES],
  ['none that is empty', '', { DATABASE_URL: '', MAILROOM_MYSQL: '' }, undefined],
])('a command takes %s', (_what, option, env, url) => {
  expect(databaseUrl(option, env, NAMES, SCHEME)).toBe(url);
});

test.each([
  ['MAILROOM_MYSQL', 'BAD_MYSQL', '--database mysql://'],
  ['MAILROOM_POSTGRES', 'BAD_POSTGRES', '--database postgresql://'],
])('the JSON of %s is refused, without its value', (name, code, remedy) => {
  let refusal: unknown;
  try {
    databaseUrl(undefined, { [name]: '{"password":"hunter2"}' }, [name]);
  } catch (error) {
    refusal = error;
  }
  expect(refusal).toMatchObject({ code, message: expect.stringContaining(remedy) });
  expect(String(refusal)).not.toContain('hunter2');
});
