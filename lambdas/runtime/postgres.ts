/**
 * `cdk-mailroom/postgres`: the outbox and the inbox of services that keep their data in PostgreSQL.
 *
 * @example
 * ```ts
 * const database = nodePostgres(new Pool());
 * await migratePostgres(database);
 * const outbox = createPostgresOutbox({ config: readPostgresProducerConfig(process.env), database });
 * ```
 */
export {
  type ProcessingConfig,
  type QueueConfig,
  readPostgresConsumerConfig,
  readPostgresInboxConfig,
} from './base/consumer-config.ts';
export type { ProcessingDeps } from './consume/consumer-context.ts';
export type {
  DatabaseConsumerDeps as PostgresConsumerDeps,
  DatabaseProcessorDeps as PostgresProcessorDeps,
} from './database/database-consumer.ts';
export type {
  DatabaseCommit as PostgresCommit,
  DatabaseHandler as PostgresHandler,
  DatabaseHandlerOptions as PostgresHandlerOptions,
  DatabaseHandlers as PostgresHandlers,
  DatabaseLeasedContext as PostgresLeasedContext,
  DatabaseRejectedContext as PostgresRejectedContext,
  DatabaseTransactionalContext as PostgresTransactionalContext,
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
  nodePostgres,
  type PgClient,
  type PgPool,
  type PgQueryable,
  type PostgresJsQueryable,
  postgresJs,
} from './postgres/databases.ts';
export { drizzle, knex, type PrismaQueryable, prisma } from './postgres/orm-databases.ts';
export {
  createPostgresConsumer,
  createPostgresInboxProcessor,
  type PostgresInboxProcessor,
} from './postgres/postgres-consumer.ts';
export { postgresHandlers } from './postgres/postgres-handlers.ts';
export { seedPostgresOrder } from './postgres/postgres-order-seed.ts';
export {
  createPostgresOutbox,
  type PostgresOutbox,
  type PostgresOutboxDeps,
} from './postgres/postgres-outbox.ts';
export { type PostgresPool, postgresPool } from './postgres/postgres-pool.ts';
export {
  createPostgresRelay,
  createPostgresRelayHandler,
  type PostgresRelayDeps,
} from './postgres/postgres-relay.ts';
export {
  type PostgresRelayConfig,
  readPostgresProducerConfig,
  readPostgresRelayConfig,
  readPostgresSettings,
} from './postgres/postgres-settings.ts';
export type { PgListener } from './postgres/wake-listener.ts';
export type { DatabaseProducerConfig, DatabaseRelayConfig } from './relay/database-config.ts';
export type { DatabasePass, DatabaseRelay, DatabaseRelayDeps } from './relay/database-relay.ts';
export type { ProcessorDeps } from './sources/inbox-processor.ts';
export type { OrderSeed } from './store/order-seed.ts';
export {
  grantPostgresRole,
  migratePostgres,
  type PostgresGrant,
} from './store/postgres/migrate.ts';
export { type Database, type Sql, type SqlResult, type SqlRow, sqlState } from './store/postgres/sql.ts';
export type {
  DatabaseAddress as PostgresSettings,
  DatabaseTls as PostgresTls,
} from './store/sql/database-address.ts';
export type {
  DatabaseEvents as PostgresEvents,
  DatabaseOutbox,
  DatabaseOutboxDeps,
} from './store/sql/database-outbox.ts';
export type { Migrated } from './store/sql/schema-version.ts';
