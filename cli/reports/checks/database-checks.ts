import type { OpenDatabase } from '../../deployment/open-database.ts';
import type { PartCheck } from './check.ts';
import { mysqlChecks } from './mysql-checks.ts';
import { postgresChecks } from './postgres-checks.ts';

/** Checks of the database that also has rows; none without one. @param now - AWS's time */
export function databaseChecks(open: OpenDatabase | undefined, now: () => number): PartCheck[] {
  if (open === undefined) return [];
  return open.engine === 'mysql' ? mysqlChecks(open, now) : postgresChecks(open, now);
}
