import type { OpenDatabase } from '../../deployment/open-database.ts';
import type { PartCheck } from './check.ts';
import { postgresChecks } from './postgres-checks.ts';

/** Checks of the database that also has rows; none without one. @param now - AWS's time */
export function databaseChecks(open: OpenDatabase | undefined, now: () => number): PartCheck[] {
  return open === undefined ? [] : postgresChecks(open, now);
}
