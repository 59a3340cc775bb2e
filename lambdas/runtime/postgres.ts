/**
 * `cdk-mailroom/postgres`: the outbox and the inbox of services that keep their data in PostgreSQL.
 *
 * @example
 * ```ts
 * const database = nodePostgres(new Pool());
 * await migratePostgres(database);
 * ```
 */
export {
  type DrizzleQueryable,
  type DrizzleSql,
  drizzle,
  type KyselyQueryable,
  kysely,
  nodePostgres,
  type PgClient,
  type PgPool,
  type PgQueryable,
  type PrismaQueryable,
  prisma,
  type TypeOrmManager,
  typeOrm,
} from './postgres/databases.ts';
export { type Migrated, migratePostgres } from './postgres/migrate.ts';
export { type Database, type Sql, type SqlResult, type SqlRow, sqlState } from './postgres/sql.ts';
