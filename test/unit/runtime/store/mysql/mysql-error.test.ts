import { describe, expect, test } from 'vitest';
import {
  isRepeatable,
  isRetryable,
  isStale,
  mysqlErrno,
} from '../../../../../lambdas/runtime/store/mysql/mysql-error.ts';

const error = (errno: number) => Object.assign(new Error('An error.'), { errno });

describe('the number of an error of MySQL', () => {
  test('is found where each layer keeps it', () => {
    expect(mysqlErrno(error(1213))).toBe(1213);
    expect(mysqlErrno(new Error('Drizzle', { cause: error(1205) }))).toBe(1205);
    expect(mysqlErrno(Object.assign(new Error('TypeORM'), { driverError: error(1062) }))).toBe(1062);
  });

  test('is none of a lost connection, of a text, and of an error that cannot be read', () => {
    expect(
      mysqlErrno(Object.assign(new Error('reset'), { errno: -104, code: 'ECONNRESET' })),
    ).toBeUndefined();
    expect(mysqlErrno('1213')).toBeUndefined();
    expect(
      mysqlErrno(
        Object.defineProperty({}, 'errno', {
          get: () => {
            throw new Error('no');
          },
        }),
      ),
    ).toBeUndefined();
  });

  test.each([
    [1213, true, true, false],
    [1205, true, true, false],
    [1290, true, true, true],
    [1053, false, true, true],
    [1040, false, true, false],
    [1062, false, false, false],
  ])('%s: repeat the transaction %s, later %s, close the connection %s', (errno, repeat, later, close) => {
    const given = error(errno);
    expect([isRepeatable(given), isRetryable(given), isStale(given)]).toEqual([repeat, later, close]);
  });
});
