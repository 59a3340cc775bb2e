/**
 * `cdk-mailroom/mysql`: the outbox and the inbox of services that keep their data in MySQL or MariaDB.
 *
 * @example
 * ```ts
 * import { createPool } from 'mysql2/promise';
 * const database = mysql2(createPool(url));
 * await migrateMysql(database);
 * const outbox = createMysqlOutbox({ config: readMysqlProducerConfig(process.env), database });
 * ```
 */
export {
  type ProcessingConfig,
  type QueueConfig,
  readMysqlConsumerConfig,
  readMysqlInboxConfig,
} from './base/consumer-config.ts';
export type { ProcessingDeps } from './consume/consumer-context.ts';
export type {
  DatabaseConsumerDeps as MysqlConsumerDeps,
  DatabaseProcessorDeps as MysqlProcessorDeps,
} from './database/database-consumer.ts';
export type {
  DatabaseCommit as MysqlCommit,
  DatabaseHandler as MysqlHandler,
  DatabaseHandlerOptions as MysqlHandlerOptions,
  DatabaseHandlers as MysqlHandlers,
  DatabaseLeasedContext as MysqlLeasedContext,
  DatabaseRejectedContext as MysqlRejectedContext,
  DatabaseTransactionalContext as MysqlTransactionalContext,
} from './database/database-handlers.ts';
export {
  type DrizzleQueryable,
  type DrizzleSql,
  type KnexQueryable,
  type KyselyQueryable,
  kysely,
  type TypeOrmManager,
  type TypeOrmResult,
  typeOrm,
} from './database/orm-databases.ts';
export {
  type Mysql2Connection,
  type Mysql2Pool,
  type Mysql2Query,
  type Mysql2Queryable,
  mysql2,
} from './mysql/databases.ts';
export {
  createMysqlConsumer,
  createMysqlInboxProcessor,
  type MysqlInboxProcessor,
} from './mysql/mysql-consumer.ts';
export { mysqlHandlers } from './mysql/mysql-handlers.ts';
export { seedMysqlOrder } from './mysql/mysql-order-seed.ts';
export { createMysqlOutbox } from './mysql/mysql-outbox.ts';
export { type MysqlPool, type MysqlPoolOptions, mysqlPool } from './mysql/mysql-pool.ts';
export { createMysqlRelay, createMysqlRelayHandler, type MysqlRelayDeps } from './mysql/mysql-relay.ts';
export {
  type MysqlRelayConfig,
  readMysqlProducerConfig,
  readMysqlRelayConfig,
  readMysqlSettings,
} from './mysql/mysql-settings.ts';
export { drizzle, knex } from './mysql/orm-databases.ts';
export type { DatabaseProducerConfig, DatabaseRelayConfig } from './relay/database-config.ts';
export type { DatabasePass, DatabaseRelay, DatabaseRelayDeps } from './relay/database-relay.ts';
export type { ProcessorDeps } from './sources/inbox-processor.ts';
export { type CaptureProblem, captureProblems } from './store/mysql/capture-check.ts';
export { migrateMysql } from './store/mysql/migrate.ts';
export { mysqlErrno } from './store/mysql/mysql-error.ts';
export { type ClaimMode, type ServerProblem, serverProblems } from './store/mysql/server-check.ts';
export type { OrderSeed } from './store/order-seed.ts';
export type { Database, Sql, SqlResult, SqlRow } from './store/sql/database.ts';
export type {
  DatabaseAddress as MysqlSettings,
  DatabaseTls as MysqlTls,
} from './store/sql/database-address.ts';
export type {
  DatabaseEvents as MysqlEvents,
  DatabaseOutbox,
  DatabaseOutboxDeps,
} from './store/sql/database-outbox.ts';
export type { Migrated } from './store/sql/schema-version.ts';
