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
export {
  nodePostgres,
  type PgClient,
  type PgPool,
  type PgQueryable,
  type PostgresJsQueryable,
  postgresJs,
} from './postgres/databases.ts';
export {
  type DrizzleQueryable,
  type DrizzleSql,
  drizzle,
  type KnexQueryable,
  type KyselyQueryable,
  knex,
  kysely,
  type PrismaQueryable,
  prisma,
  type TypeOrmManager,
  type TypeOrmResult,
  typeOrm,
} from './postgres/orm-databases.ts';
export {
  createPostgresConsumer,
  createPostgresInboxProcessor,
  type PostgresConsumerDeps,
  type PostgresInboxProcessor,
  type PostgresProcessorDeps,
} from './postgres/postgres-consumer.ts';
export {
  type PostgresCommit,
  type PostgresHandler,
  type PostgresHandlerOptions,
  type PostgresHandlers,
  type PostgresLeasedContext,
  type PostgresRejectedContext,
  type PostgresTransactionalContext,
  postgresHandlers,
} from './postgres/postgres-handlers.ts';
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
export type { PostgresEvents } from './store/postgres/inbox-row.ts';
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
export type { DatabaseOutbox, DatabaseOutboxDeps } from './store/sql/database-outbox.ts';
export type { Migrated } from './store/sql/schema-version.ts';
