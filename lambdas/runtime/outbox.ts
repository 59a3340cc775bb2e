import type { ProducerConfig } from './config.ts';
import type { Clock } from './clock.ts';
import type { Envelope, EventDraft } from './event.ts';
import type { Put, Table, TransactAction } from './table.ts';

/** What one commit writes. */
export interface Commit {
  /** Domain writes and condition checks, in the document client's shape. @default none */
  readonly writes?: readonly TransactAction[] | undefined;
  /** Events to publish if, and only if, the transaction commits. @default none */
  readonly events?: readonly EventDraft[] | undefined;
}

/** The writing side of Mailroom. */
export interface Outbox {
  commit(commit: Commit): Promise<readonly Envelope[]>;
  entries(events: readonly EventDraft[]): Promise<readonly { readonly Put: Put }[]>;
}

export interface OutboxDeps {
  readonly config: ProducerConfig;
  readonly table: Table;
  readonly clock?: Clock;
}

export declare function createOutbox(deps: OutboxDeps): Outbox;
