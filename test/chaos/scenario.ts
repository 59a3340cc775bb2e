import type { DatabaseEngine } from '../../lambdas/runtime/base/database-engine.ts';
import type { Stage } from './stage.ts';

/** A failure, made on purpose, and what must come of it. One file each, listed in `catalog.ts`. */
export interface Scenario {
  /** How it is asked for: the name of its file. */
  readonly name: string;
  /** What fails, in a few words. */
  readonly title: string;
  /** How long it may take, milliseconds. @default 20 minutes: only one that hangs takes as long */
  readonly limitMs?: number | undefined;
  /** The database of the orders, their outbox and the inbox of order-status. @default the table */
  readonly engine?: DatabaseEngine | undefined;
  /**
   * Breaks something, waits until the system has settled, and counts. What it broke through the stage is put
   * back by the runner, also when it throws.
   */
  run(stage: Stage): Promise<Counts>;
}

/** What a scenario counted: read from the tables, never assumed. */
export interface Counts {
  /** Orders of which something that must happen did not. */
  readonly lost: number;
  /** Charges, e-mails, events and pieces of stock beyond what was ordered. */
  readonly duplicated: number;
}

/** How a scenario ended. */
export interface Outcome {
  readonly name: string;
  readonly passed: boolean;
  /** Absent when it ended before it had counted. */
  readonly lost: number | undefined;
  readonly duplicated: number | undefined;
  readonly seconds: number;
  /** What is wrong, in words; empty when it passed. */
  readonly problems: readonly string[];
}
