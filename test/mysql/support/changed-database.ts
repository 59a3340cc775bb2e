import type { Pool, PoolConnection } from 'mysql2/promise';
import { type Mysql2Query, mysql2 } from '../../../lambdas/runtime/mysql/databases.ts';
import type { Database } from '../../../lambdas/runtime/store/sql/database.ts';

type Answer = Promise<readonly [unknown, ...unknown[]]>;

/** Sends a statement, or another one, or none. @param send - sends it on the connection that it was meant for */
export type Change = (
  query: Mysql2Query,
  send: (query: Mysql2Query) => Answer,
  connection: Pool | PoolConnection,
) => Answer;

/** The database of a pool, whose statements a test changes; those that a handler sends itself stay as they are. */
export function changedDatabase(pool: Pool, change: Change): Database<PoolConnection> {
  const changed = <Of extends Pool | PoolConnection>(of: Of): Of =>
    new Proxy(of, {
      get: (target, name) => {
        const member = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        if (name === 'getConnection') return async () => changed(await (target as Pool).getConnection());
        if (name !== 'query') return member.bind(target);
        const send = (query: Mysql2Query) => target.query(query as never) as unknown as Answer;
        return (query: Mysql2Query | string, values?: unknown[]) =>
          typeof query === 'string' ? target.query(query, values) : change(query, send, target);
      },
    });
  return mysql2(changed(pool) as never);
}
