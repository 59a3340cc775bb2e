import { type Clock, systemClock } from '../../clock.ts';
import { MailroomError } from '../../errors.ts';
import { minuteOf } from '../../store/event-id.ts';
import type { Table } from '../../store/table.ts';
import type { Directory } from '../directory.ts';
import type { Queues } from '../queues.ts';
import type { EntryVersions } from './audit-declaration.ts';
import { createDoubles, type DoubledEvent } from './audit-doubles.ts';
import { type DeployedRules, type Drift, findDrift } from './audit-drift.ts';
import {
  type ConsumerLedger,
  createLedger,
  type MissingEvent,
  type UnreadableFinding,
} from './audit-ledger.ts';
import type { QueueAges } from './audit-queue-age.ts';
import { judgeUndecided } from './audit-verdict.ts';
import { type WalkRange, walkOutbox } from './audit-walk.ts';

/** What an audit needs. It only reads. */
export interface AuditDeps {
  readonly table: Pick<Table, 'get' | 'query'>;
  /** Says which consumers must see which events: what the constructs declared, not what is deployed now. */
  readonly directory: Directory;
  readonly queues: Pick<Queues, 'depth' | 'receive' | 'show'>;
  readonly rules: DeployedRules;
  /** Without it, an event of a queue that is never empty counts as waiting for as long. @default none */
  readonly ages?: QueueAges | undefined;
  /**
   * Dates each subscription of a consumer. Without it, or where it fails, any change of a consumer's entry makes every event
   * before it unproven. @default none
   */
  readonly versions?: EntryVersions | undefined;
  /** @default the machine's */
  readonly clock?: Clock | undefined;
}

/** The events that one audit looks at. */
export interface AuditRange extends WalkRange {
  /** An event published less than this ago may still be on its way. @default 5 minutes */
  readonly graceMs?: number | undefined;
  /**
   * Also expects of each consumer what was published before it was declared to see it: for a consumer that needs the past as
   * well, or after a wrong declaration was fixed. @default false
   */
  readonly earlier?: boolean | undefined;
  /** The audit ends before this and says what it did not get to. @default it takes the time it needs */
  readonly endsBy?: number | undefined;
  /** Ends it early when aborted. */
  readonly signal?: AbortSignal | undefined;
}

/** What an audit found. All times are epoch milliseconds. */
export interface AuditReport {
  readonly since: number;
  readonly until: number;
  /** How many events there are: `published + pending + dead + discarded + unreadable`. */
  readonly events: number;
  readonly published: number;
  readonly pending: number;
  readonly dead: number;
  readonly discarded: number;
  /** Outbox rows that are not as Mailroom writes them, or that a newer version wrote. */
  readonly unreadable: number;
  /** By consumer: `expected` is the sum of all others. */
  readonly consumers: Readonly<Record<string, ConsumerLedger>>;
  /** The rows that cannot be read: outbox rows, then the inbox rows of each consumer. */
  readonly unreadableRows: readonly UnreadableFinding[];
  /** Which published events which consumers never received. */
  readonly missing: readonly MissingEvent[];
  /** Events that were written twice for one cause. */
  readonly doubled: readonly DoubledEvent[];
  /** Where the deployed rules and queues are not what was declared. */
  readonly drift: readonly Drift[];
  /** What it could not look at; empty when it saw everything. */
  readonly incomplete: readonly string[];
  /** How many of the missing were sent again since. */
  readonly repaired: number;
}

/** The conservation check, made by {@link createAudit}. */
export interface Audit {
  /**
   * Looks at every event of a range, and accounts for each at every consumer that must see it.
   *
   * @throws `BAD_RANGE` when the range is empty
   * @throws `AUDIT_DOES_NOT_ADD_UP` when the counts of a consumer do not make up what was expected of it
   */
  run(range: AuditRange): Promise<AuditReport>;
}

/** How long an event may be on its way. SQS's counts of messages, too, are right only after a minute or so. */
const GRACE_MS = 5 * 60_000;

/** The share of the time that the walk through the outbox may take; the rest is for those that have no inbox row. */
const WALK_SHARE = 0.7;

/**
 * Makes the audit: for each consumer, *published = processed + in flight + failed + rejected + discarded + unreadable + dead letters +
 * waiting + unproven + missing*. It counts rows and dead letters, never CloudWatch's sums, so that what was lost anywhere between the bus
 * and the inbox is found: a missing bus, a drifted rule, a purged queue.
 *
 * What a published event without an inbox row is: *deadLetters* when a dead letter of it is in the consumer's dead-letter or
 * undelivered queue; *waiting* while it may still be on its way; *unproven* when it need not have a row (see `earlier`, and
 * the retention of the inbox); else *missing*, confirmed by a strongly consistent read. *Missing* is also one that was to be
 * tried again, by its row, and of which no message is left: neither a letter, nor anything at all in the queue.
 *
 * Each event costs its share of a query of the outbox (0.04 to 0.13 read units for 0.3 to 1 KB) and half a read unit for
 * each of its consumers; an event without an inbox row one unit more.
 *
 * @example
 * ```ts
 * const audit = createAudit({ table, directory, queues, rules });
 * const { missing } = await audit.run({ since: Date.now() - 3_600_000, until: Date.now() });
 * ```
 */
export function createAudit(deps: AuditDeps): Audit {
  const { clock = systemClock, directory } = deps;

  return {
    run: async (range) => {
      const { since, until, graceMs = GRACE_MS, signal } = range;
      checkRange(since, until, graceMs);
      const startedAt = clock.now();
      const endsBy = range.endsBy ?? Number.POSITIVE_INFINITY;
      const walkEndsBy = startedAt + (endsBy - startedAt) * WALK_SHARE;
      const goesOn = (by: number) => () => signal?.aborted !== true && clock.now() < by;

      const incomplete: string[] = [];
      const drift = await findDrift(deps, directory);
      const ledger = createLedger(directory);
      const doubles = createDoubles();
      const { seenUntil, counts, unreadable } = await walkOutbox(
        { ...deps, ledger, doubles, overdueAt: startedAt - graceMs, goesOn: goesOn(walkEndsBy) },
        range,
      );
      if (seenUntil < until)
        incomplete.push(`There was no time for all of what was committed from ${minuteOf(seenUntil)}Z on.`);
      for (const consumer of directory.consumers) {
        const judging = { ...deps, clock, graceMs, earlier: range.earlier ?? false, goesOn: goesOn(endsBy) };
        incomplete.push(...(await judgeUndecided(judging, consumer, ledger)));
      }
      return {
        since,
        until,
        ...counts,
        consumers: ledger.close(),
        unreadableRows: [...unreadable, ...ledger.unreadable()],
        missing: ledger.missing(),
        doubled: doubles.found(),
        drift,
        incomplete,
        repaired: 0,
      };
    },
  };
}

function checkRange(since: number, until: number, graceMs: number): void {
  if (Number.isFinite(since) && Number.isFinite(until) && since < until && graceMs >= 0) return;
  throw new MailroomError(
    'BAD_RANGE',
    `The audit was asked for events from ${since} to ${until}, with ${graceMs} ms of grace; expected two times in epoch ` +
      'milliseconds, the first before the second, and a grace from 0.',
  );
}
