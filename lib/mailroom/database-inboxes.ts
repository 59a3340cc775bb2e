import type { IConstruct } from 'constructs';
import type { DatabaseEngine } from '../../lambdas/runtime/base/database-engine.ts';

const ENGINES = new WeakMap<IConstruct, DatabaseEngine>();

/** Tells the directory that the function of a consumer keeps its inbox in a database. */
export function inboxIsIn(consumer: IConstruct, engine: DatabaseEngine): void {
  ENGINES.set(consumer, engine);
}

/** Returns the kind of database in which the function of a consumer keeps its inbox; `undefined` for the table. */
export function inboxEngine(consumer: IConstruct): DatabaseEngine | undefined {
  return ENGINES.get(consumer);
}
