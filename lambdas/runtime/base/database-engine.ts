/** A kind of database in which services keep their outbox and their inboxes. MariaDB is `mysql`. */
export type DatabaseEngine = 'postgres' | 'mysql';

/** The engines with their names, in the order in which people list them. */
export const DATABASE_NAMES: Readonly<Record<DatabaseEngine, string>> = {
  postgres: 'PostgreSQL',
  mysql: 'MySQL',
};

/** Returns true if a value names an engine. */
export function isDatabaseEngine(value: unknown): value is DatabaseEngine {
  return typeof value === 'string' && Object.hasOwn(DATABASE_NAMES, value);
}
