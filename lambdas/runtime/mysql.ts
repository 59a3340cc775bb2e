/**
 * `cdk-mailroom/mysql`: the outbox of services that keep their data in MySQL or MariaDB.
 *
 * @example
 * ```ts
 * import { createPool } from 'mysql2/promise';
 * await migrateMysql(mysql2(createPool(url)));
 * ```
 */
export {
  type Mysql2Connection,
  type Mysql2Pool,
  type Mysql2Query,
  type Mysql2Queryable,
  mysql2,
} from './mysql/databases.ts';
export { migrateMysql } from './store/mysql/migrate.ts';
export { mysqlErrno } from './store/mysql/mysql-error.ts';
export type { Database, Sql, SqlResult, SqlRow } from './store/sql/database.ts';
export type { Migrated } from './store/sql/schema-version.ts';
