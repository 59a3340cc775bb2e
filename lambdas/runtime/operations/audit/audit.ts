import { awsFault } from '../../base/aws-errors.ts';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { DatabaseEngine } from '../../base/database-engine.ts';
import { errorCode, MailroomError } from '../../base/errors.ts';
import { DELIVERY_GRACE_MS } from '../../base/patience.ts';
import { DAY_MS, HOUR_MS } from '../../base/units.ts';
import type { EventRef } from '../../events/event.ts';
import { minuteOf } from '../../store/event-id.ts';
import type { Table } from '../../store/table.ts';
import { type BusFault, busFaults, byInbox, type InDatabase, withNeighbors } from '../bus-consumers.ts';
import type { BusDirectory } from '../bus-directory.ts';
import type { ConsumerEntry, Directory } from '../directory.ts';
import type { BrokenDirectory } from '../directory-reader.ts';
import { dynamoInboxRow, dynamoInboxRows } from '../inbox-rows.ts';
import type { MailroomRows } from '../mailroom-rows.ts';
import { dynamoOutboxRows } from '../outbox-rows.ts';
import type { Queues } from '../queues.ts';
import { externalEventsOf, mailroomEventsOf } from '../subscribed-events.ts';
import { createBacklogs } from './audit-backlog.ts';
import { createChangedRows, type ListedRejections } from './audit-changed-rows.ts';
import type { EntryVersions } from './audit-declaration.ts';
import { createDeliveries, errorBudgets } from './audit-deliveries.ts';
import { createDoubles } from './audit-doubles.ts';
import { type DeployedRules, findDrift } from './audit-drift.ts';
import { createLedger, type InconclusiveEvents } from './audit-ledger.ts';
import type { QueueAges } from './audit-queue-age.ts';
import type { AuditReport } from './audit-report.ts';
import { judgeUndecided } from './audit-verdict.ts';
import { type WalkRange, type WalkReport, walkOutbox } from './audit-walk.ts';

/** Another Mailroom on the bus. */
interface AuditNeighbor {
  readonly directory: Directory;
  /** Read by single items, as the policy of its table may allow. A refusal makes what it hides unproven, never missing. */
  readonly table: Pick<Table, 'get'>;
}

/** Dependencies of {@link createAudit}. The audit only reads. */
export interface AuditDeps {
  readonly table: Pick<Table, 'get' | 'getEach' | 'query'>;
  /** @default the rows in the table */
  readonly stored?: MailroomRows | undefined;
  /** The consumers that must receive each event, as the constructs declared them, which may differ from what is deployed. */
  readonly directory: Directory;
  /** The other Mailrooms on the bus, whose consumers must receive the events as well. @default none */
  readonly neighbors?: readonly AuditNeighbor[] | undefined;
  /** The kind of database whose rows `stored` also reads. @default none: consumers whose inbox is in a database are not audited */
  readonly readsDatabase?: DatabaseEngine | undefined;
  /** The claims on the bus, which show a consumer without an entry. @default they are not read */
  readonly claims?: BusDirectory | undefined;
  /** The Mailrooms of the region whose directory entry cannot be used. @default none */
  readonly broken?: readonly BrokenDirectory[] | undefined;
  readonly queues: Pick<Queues, 'depth' | 'receive' | 'show'>;
  readonly rules: DeployedRules;
  /** Without it, an event without a row is inconclusive as long as its consumer's queue is not empty. @default none */
  readonly ages?: QueueAges | undefined;
  /**
   * Dates each subscription of a consumer. Without it, or if it fails, any change of a consumer's entry makes all earlier events
   * unproven. @default none
   */
  readonly versions?: EntryVersions | undefined;
  /** Reads the pointers that list rejected messages. @default they are not read, and no message is found unlisted */
  readonly listed?: ListedRejections | undefined;
  /** The number of partitions of the outbox that are read concurrently. @default 8 */
  readonly partitionsAtOnce?: number | undefined;
  /** @default the machine's clock */
  readonly clock?: Clock | undefined;
}

/** The events that one audit covers. */
export interface AuditRange extends WalkRange {
  /** The time during which a published event may still be in delivery, milliseconds. @default 5 minutes */
  readonly graceMs?: number | undefined;
  /**
   * Also expects each consumer to have received events published before it was declared to receive them: for a consumer that needs
   * past events as well, or after a wrong declaration was fixed. @default false
   */
  readonly earlier?: boolean | undefined;
  /** The time by which the audit ends and reports what it did not cover, epoch milliseconds. @default no limit */
  readonly endsBy?: number | undefined;
  /** The length of the periods of {@link AuditReport.deliveries}, milliseconds. @default a day, UTC */
  readonly deliveriesMs?: number | undefined;
  /** Ends the audit early when aborted. */
  readonly signal?: AbortSignal | undefined;
}

function notAudited(
  { consumers, sourceConsumers = [] }: Directory,
  unread: readonly InDatabase[],
): AuditReport['notAudited'] {
  const of = (
    because: 'external' | DatabaseEngine | 'source',
    { name: consumer }: Pick<ConsumerEntry, 'name'>,
    found: readonly EventRef[],
  ) => {
    const events = found.map(({ source, type }) => ({ source, type }));
    return events.length === 0 ? [] : [{ consumer, events, because }];
  };
  return [
    ...consumers.flatMap((consumer) => of('external', consumer, externalEventsOf(consumer))),
    ...unread.flatMap((consumer) => of(consumer.inbox, consumer, mailroomEventsOf(consumer))),
    ...sourceConsumers.flatMap((consumer) => of('source', consumer, consumer.events)),
  ];
}

/** The conservation check, created by {@link createAudit}. */
export interface Audit {
  /**
   * Reads every event of a range, and accounts for each at every consumer that must receive it.
   *
   * @throws `BAD_RANGE` if the range is empty
   * @throws `AUDIT_DOES_NOT_ADD_UP` if the counts of a consumer do not add up to its expected events
   */
  run(range: AuditRange): Promise<AuditReport>;
}

/** The share of the time for the walk through the outbox; the rest is for events without an inbox row. */
const WALK_SHARE = 0.7;

/**
 * Creates the audit: for each consumer, *published = processed + in flight + failed + rejected + discarded + unreadable +
 * dead letters + waiting + inconclusive + unproven + missing*. It counts rows and dead letters, never CloudWatch's sums, so it finds losses
 * anywhere between the bus and the inbox: a missing bus, a drifted rule, a purged queue.
 *
 * A published event without an inbox row counts as *deadLetters* if one of its dead letters is in the consumer's dead-letter or
 * undelivered queue; as *waiting* while it may still be in delivery; as *unproven* if it need not have a row (see `earlier`, and
 * the retention of the inbox); otherwise, confirmed by a strongly consistent read, as *missing*, or as *inconclusive* if the
 * consumer's queue is not empty and may hold it. So does an event whose row requires an overdue retry: it is *missing* if no
 * message is left, neither a dead letter nor one in the queue.
 *
 * Each event costs its share of an outbox query (0.04 to 0.13 read units for 0.3 to 1 KB) and half a read unit for each of its
 * consumers; an event without an inbox row costs one more unit.
 *
 * @example
 * ```ts
 * const audit = createAudit({ table, directory, queues, rules });
 * const { missing } = await audit.run({ since: Date.now() - 3_600_000, until: Date.now() });
 * ```
 */
export function createAudit(deps: AuditDeps): Audit {
  const { clock = systemClock } = deps;
  const bus = busOf(deps);
  const { directory } = bus;

  return {
    run: async (range) => {
      const { since, until, graceMs = DELIVERY_GRACE_MS, signal } = range;
      checkRange(since, until, graceMs);
      const startedAt = clock.now();
      const endsBy = range.endsBy ?? Number.POSITIVE_INFINITY;
      const walkEndsBy = startedAt + (endsBy - startedAt) * WALK_SHARE;
      const hasTimeLeft = (by: number) => () => signal?.aborted !== true && clock.now() < by;

      const incomplete = [...unlistedTexts(directory), ...busFaults(deps, deps.claims).map(faultText)];
      const inconclusive: InconclusiveEvents[] = [];
      const drift = await findDrift(deps, deps.directory);
      const { deliveriesMs: periodMs = DAY_MS } = range;
      const accounts = openAccounts({ directory, periodMs, graceMs, now: startedAt });
      const { deliveries, backlogs, changed, ledger, doubles } = accounts;
      const { seenUntil, counts, unreadable, shards } = await walkOutbox(
        {
          ...deps,
          ...bus,
          ...accounts,
          overdueAt: startedAt - graceMs,
          hasTimeLeft: hasTimeLeft(walkEndsBy),
        },
        range,
      );
      if (seenUntil < until)
        incomplete.push(
          `There was not enough time for all events committed from ${minuteOf(seenUntil)}Z on.`,
        );
      if (shards.used > shards.swept) incomplete.push(higherShardsText(shards, startedAt - since));
      for (const consumer of directory.consumers) {
        const judging = {
          ...deps,
          outbox: bus.outbox,
          inbox: bus.inboxOf(consumer),
          clock,
          graceMs,
          earlier: range.earlier ?? false,
          hasTimeLeft: hasTimeLeft(endsBy),
        };
        const judgment = await judgeUndecided(judging, consumer, ledger);
        incomplete.push(...judgment.incomplete);
        inconclusive.push(...judgment.inconclusive);
      }
      const found = deliveries.found();
      return {
        since,
        until,
        readUntil: seenUntil,
        ...counts,
        consumers: ledger.close(),
        backlogs: backlogs.found(),
        deliveries: found,
        errorBudgets: errorBudgets(directory, found),
        unreadableRows: [...unreadable, ...ledger.unreadable()],
        changedRows: await changed.found(bus.inbox, deps.listed),
        missing: ledger.missing(),
        inconclusive,
        duplicated: doubles.found(),
        drift,
        notAudited: notAudited(deps.directory, bus.unread),
        incomplete,
        repaired: 0,
        repairedRows: 0,
      };
    },
  };
}

/** Opens the accounts of an audit, each of which counts what the ledger counts. */
function openAccounts(of: Parameters<typeof createDeliveries>[0]) {
  const { directory, now } = of;
  const deliveries = createDeliveries(of);
  const backlogs = createBacklogs(directory, now);
  const changed = createChangedRows(directory, now);
  const ledger = createLedger(directory, (...counted) => {
    const [consumer, eventId, , row] = counted;
    deliveries.add(...counted);
    backlogs.add(...counted);
    if (row !== undefined) changed.message(consumer, eventId, row);
  });
  return { deliveries, backlogs, changed, ledger, doubles: createDoubles() };
}

function unlistedTexts({ unlisted = [] }: Directory): string[] {
  return unlisted
    .filter(({ fault }) => fault === undefined)
    .map(
      ({ name }) =>
        `The directory has no entry of ${name}, so its events were not checked: \`doctor\` names the command that restores it.`,
    );
}

function faultText({ text }: BusFault): string {
  return `A parameter of the bus cannot be used, so what it describes was not checked. ${text}`;
}

/** Events in shards that the sweep does not read: it never publishes those that the stream relay misses. */
function higherShardsText({ swept, used }: WalkReport['shards'], agoMs: number): string {
  const since = `${Math.max(1, Math.ceil(agoMs / HOUR_MS))}h`;
  return (
    `Shard ${used - 1} has events, but the sweep reads ${swept} shards: a producer, which doctor names, has a higher MAILROOM_SHARDS. To publish them, and ` +
    `have the sweep read their shards: npx cdk-mailroom sweep --since ${since} --shards ${used}`
  );
}

/** The consumers of every Mailroom on the bus, the outbox, and their inboxes. */
function busOf({ table, stored, directory, neighbors = [], claims, readsDatabase }: AuditDeps) {
  const { outbox, inbox } = stored ?? { outbox: dynamoOutboxRows(table), inbox: dynamoInboxRows(table) };
  const directories = neighbors.map((neighbor) => neighbor.directory);
  const inboxes = new Map(
    neighbors.map(({ directory, table }) => [directory.mailroom.table, dynamoInboxRow(untilRefused(table))]),
  );
  const { read, unread } = byInbox(withNeighbors(directory, directories, claims), readsDatabase);
  return {
    directory: read,
    unread,
    outbox,
    inbox,
    inboxOf: ({ elsewhere }: ConsumerEntry) => inboxes.get(elsewhere?.table ?? '') ?? inbox,
  };
}

/** A table that is not asked again once it has denied access: each of thousands of events would be a call. */
function untilRefused(table: Pick<Table, 'get'>): Pick<Table, 'get'> {
  let refusal: unknown;
  return {
    get: async (...key) => {
      if (refusal !== undefined) throw refusal;
      return table.get(...key).catch((error: unknown) => {
        if (awsFault(errorCode(error)) === 'denied') refusal = error;
        throw error;
      });
    },
  };
}

function checkRange(since: number, until: number, graceMs: number): void {
  if (Number.isFinite(since) && Number.isFinite(until) && since < until && graceMs >= 0) return;
  throw new MailroomError(
    'BAD_RANGE',
    `The audit received the range ${since} to ${until} with a grace of ${graceMs} ms; expected two times in epoch ` +
      'milliseconds, the first before the second, and a grace of at least 0.',
  );
}
