import type { IConstruct } from 'constructs';

const IN_POSTGRES = new WeakSet<IConstruct>();

/** Tells the directory that the function of a consumer keeps its inbox in a PostgreSQL database. */
export function inboxIsInPostgres(consumer: IConstruct): void {
  IN_POSTGRES.add(consumer);
}

/** True if the function of a consumer keeps its inbox in a PostgreSQL database. */
export function isInboxInPostgres(consumer: IConstruct): boolean {
  return IN_POSTGRES.has(consumer);
}
