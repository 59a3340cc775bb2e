import { decisionsMutants } from './decisions.ts';
import { inboxMutants } from './inbox.ts';
import type { Mutant } from './mutant.ts';
import { mysqlMutants } from './mysql.ts';
import { publishingMutants } from './publishing.ts';
import { runsMutants } from './runs.ts';
import { transportsMutants } from './transports.ts';

/** All mutants, in the order in which an event passes the stages. */
export const MUTANTS: readonly Mutant[] = [
  publishingMutants,
  inboxMutants,
  runsMutants,
  transportsMutants,
  decisionsMutants,
  mysqlMutants,
].flat();
