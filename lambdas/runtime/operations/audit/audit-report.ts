import type { DatabaseEngine } from '../../base/database-engine.ts';
import type { EventRef } from '../../events/event.ts';
import type { ConsumerBacklog } from './audit-backlog.ts';
import type { ChangedRow } from './audit-changed-rows.ts';
import type { ErrorBudget, PeriodDeliveries } from './audit-deliveries.ts';
import type { DuplicatedEvent } from './audit-doubles.ts';
import type { Drift } from './audit-drift.ts';
import type { ConsumerLedger, InconclusiveEvents, MissingEvent, UnreadableFinding } from './audit-ledger.ts';

/** The results of an audit. All times are epoch milliseconds. */
export interface AuditReport {
  readonly since: number;
  readonly until: number;
  /** The end of the part that was read completely: `until`, unless the time was up. */
  readonly readUntil: number;
  /** The number of events: `published + pending + dead + discarded + cancelled + unreadable`. */
  readonly events: number;
  readonly published: number;
  readonly pending: number;
  readonly dead: number;
  readonly discarded: number;
  readonly cancelled: number;
  /** Outbox rows in a form that Mailroom does not write, or written by a newer version. */
  readonly unreadable: number;
  /** By consumer: `expected` is the sum of all others. */
  readonly consumers: Readonly<Record<string, ConsumerLedger>>;
  /** By consumer, the published events that it has yet to process. */
  readonly backlogs: readonly ConsumerBacklog[];
  /** By period of the events' commits and by consumer, how many were processed, and in time. */
  readonly deliveries: readonly PeriodDeliveries[];
  /** The error budgets of the consumers with an SLO, for the range. */
  readonly errorBudgets: readonly ErrorBudget[];
  /** The unreadable rows: outbox rows, then the inbox rows of each consumer. */
  readonly unreadableRows: readonly UnreadableFinding[];
  /** The rows that Mailroom does not write as they are; a repair puts them right. */
  readonly changedRows: readonly ChangedRow[];
  /** The published events that a consumer never received, with that consumer. */
  readonly missing: readonly MissingEvent[];
  /** By consumer, the number of events that are in its queue or lost. Not empty: the audit proves nothing about them. */
  readonly inconclusive: readonly InconclusiveEvents[];
  /** Events that were written twice for one cause. */
  readonly duplicated: readonly DuplicatedEvent[];
  /** The deployed rules and queues that differ from the declaration. */
  readonly drift: readonly Drift[];
  /**
   * The events of each consumer that the audit does not cover. `external`: they have no outbox row. `postgres`, `mysql`: the consumer's inbox is in
   * a database of that kind, and was not read. `source`: another source than SQS delivers them, so an absent row proves nothing.
   */
  readonly notAudited: readonly {
    readonly consumer: string;
    readonly events: readonly EventRef[];
    readonly because: 'external' | DatabaseEngine | 'source';
  }[];
  /** The parts that could not be checked; empty if the audit is complete. */
  readonly incomplete: readonly string[];
  /** The number of missing events that were sent again since. */
  readonly repaired: number;
  /** The number of changed rows that were put right since. */
  readonly repairedRows: number;
}
