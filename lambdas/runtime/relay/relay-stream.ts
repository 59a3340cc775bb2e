import { unmarshall } from '@aws-sdk/util-dynamodb';
import type { Context, DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from 'aws-lambda';
import pMap from 'p-map';
import { CLOCK_SKEW_MS } from '../base/clock.ts';
import { groupsOf, PUT_EVENTS_ENTRIES_MAX } from '../bus/event-bus.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import { flushSpans } from '../observe/tracer.ts';
import { type PendingRow, pendingRow } from '../outbox/pending-row.ts';
import { READ_NUMBERS } from '../store/dynamo/attributes.ts';
import { claimEvents, releaseEvents } from '../store/dynamo/outbox-writes.ts';
import { eventIdTime } from '../store/event-id.ts';
import { UNIQUE_PREFIX } from '../store/keys.ts';
import type { Item } from '../store/table.ts';
import type { BusBreaker } from './bus-breaker.ts';
import { declaredSources } from './declared-sources.ts';
import { createHigherShards } from './higher-shards.ts';
import { afterProducers, reportMissedTurns } from './producer-turn.ts';
import { GROUP_ROWS, publishEvents, withOutcome } from './publish-events.ts';
import {
  CONCURRENCY,
  type RelayContext,
  type RelayHandlerDeps,
  relayContext,
  startPass,
} from './relay-context.ts';
import { FRESH_MS, HAND_BACK_MS } from './stream-settings.ts';

/** If an event id's time and its record's time differ by more than this, a clock is wrong, milliseconds. */
const CLOCK_DIFFERENCE_MAX_MS = 60_000;

/** The PENDING row in a record's image. */
interface StreamRow extends PendingRow {
  readonly record: DynamoDBRecord;
  readonly sequenceNumber: string;
  /** The time at which DynamoDB wrote it, epoch milliseconds, truncated to the second. */
  readonly recordedAt: number;
  /** The lease in the image, for comparison on redelivery: `leaseUntil` changes with a claim. */
  readonly bornLeaseUntil: number;
}

/** The part of an unpublished row that is needed to return its record to the mapping. */
type Unpublished = Pick<StreamRow, 'bornLeaseUntil' | 'sequenceNumber'>;

/** The result of a group of new rows, except for the published ones. */
interface GroupReport {
  /** Records that have to be claimed first: initially, or by the time they were processed. */
  readonly late: readonly DynamoDBRecord[];
  readonly unpublished: readonly Unpublished[];
  /** Not returned to the mapping: the stream moves on, and the sweep counts them. */
  readonly undeclared: readonly StreamRow[];
  /** The time at which the most recent declared row was recorded, epoch milliseconds; 0 before the first. */
  readonly youngest: number;
}

/**
 * Creates the handler of the stream relay: it publishes the INSERT records of `OUTBOX#` items.
 *
 *     write                          publish                  the sweep may claim it
 *       |---------------- stream lease (30 s) -----------------|
 *       |-- fresh (5 s) --|---- late: claimed before publishing --------------- …
 *
 * A fresh record is published immediately and then marked. Any other record is claimed first, on the lease in its image; this
 * covers late records and redelivered ones, because a mapping that retries also returns records that succeeded. A refused claim
 * means that another publisher holds the row, and counts as success. So is a record whose producer publishes at once, after its
 * producer's turn, unless the producer marked it. A scheduled event is skipped until it is due; one that was committed after that is
 * late. Records that the bus did not accept are returned to the
 * mapping during their stream lease; after that, the sweep publishes them. A record of a shard that the sweep does not read yet is
 * returned until it does (see {@link createHigherShards}). The handler is also correct if the mapping ignores
 * the records that it returns.
 *
 * Rows are read a few groups at a time, and only the keys of finished rows are kept: a batch of 10,000 records needs about 3 MB
 * in addition to the batch itself.
 *
 * @example
 * ```ts
 * export const handler = createRelayStream({ config, table, bus });
 * ```
 */
export function createRelayStream(
  deps: RelayHandlerDeps,
): (event: DynamoDBStreamEvent, context?: Context) => Promise<DynamoDBBatchResponse> {
  const { config, concurrency = CONCURRENCY } = deps;
  const context = relayContext(deps, 'stream', concurrency);
  const { clock, telemetry } = context;
  const declared = declaredSources(config, telemetry);
  const higherShards = createHigherShards(context);
  // Enough groups to keep the bus busy, plus one, because the last call of a group and its marks must be awaited.
  const groupsAtOnce = 1 + Math.ceil((concurrency * PUT_EVENTS_ENTRIES_MAX) / GROUP_ROWS);
  const inGroups = <T>(rows: Iterable<StreamRow>, work: (group: StreamRow[]) => Promise<T>) =>
    pMap(groupsOf(rows, GROUP_ROWS), work, { concurrency: groupsAtOnce });

  return async (event, lambda) => {
    if (lambda) telemetry.startInvocation?.(lambda);
    const breaker = startPass(context);
    const unswept = await higherShards(recordsOf(event));
    const reports = await inGroups(readRecords(event, context), (group) => {
      const rows = group.filter(declared.has);
      const undeclared = group.filter((row) => !declared.has(row));
      return publishNew(context, rows, undeclared, breaker);
    });
    declared.report(reports.flatMap(({ undeclared }) => undeclared));
    // One deadline for all groups: the function's timeout allows for one claim's duration, and marks must not be cut off.
    const lastPublishAt = clock.now() + config.claimLeaseMs - config.publishTimeoutMs - CLOCK_SKEW_MS;
    const stillLate = await inGroups(rowsOf(reports.flatMap(({ late }) => late)), (group) =>
      publishLate(context, group, breaker, () => clock.now() < lastPublishAt),
    );

    const unpublished = [...reports.flatMap((report) => report.unpublished), ...stillLate.flat()];
    const failures = [
      ...unpublished.flatMap((row) => (row.bornLeaseUntil > clock.now() ? row.sequenceNumber : [])),
      ...unswept.flatMap(({ dynamodb }) => dynamodb?.SequenceNumber ?? []),
    ];
    const youngest = Math.max(0, ...reports.map((report) => report.youngest));
    if (failures.length > 0)
      await clock.sleep(Math.max(HAND_BACK_MS, untilNoLongerFresh(youngest, clock.now())));
    telemetry.flush();
    await flushSpans(clock);
    return { batchItemFailures: [...new Set(failures)].map((itemIdentifier) => ({ itemIdentifier })) };
  };
}

/** Publishes the fresh rows of a group without a claim. */
async function publishNew(
  context: RelayContext,
  rows: readonly StreamRow[],
  undeclared: readonly StreamRow[],
  breaker: BusBreaker,
): Promise<GroupReport> {
  const isFresh = (row: StreamRow) =>
    row.producerUntil === undefined &&
    row.dueAt === undefined &&
    Math.abs(context.clock.now() - row.recordedAt) < FRESH_MS;
  const fresh = rows.filter(isFresh);
  const late = rows.filter((row) => !fresh.includes(row));
  const outcomes = await publishEvents(context, fresh, breaker, isFresh);
  return {
    late: [...late, ...withOutcome(outcomes, 'leaseTooShort')].map(({ record }) => record),
    unpublished: withOutcome(outcomes, 'bus', 'access', 'skipped').map(keyOf),
    undeclared,
    youngest: Math.max(0, ...rows.map(({ recordedAt }) => recordedAt)),
  };
}

/** Claims and publishes rows while there is time; failed rows get back the lease of their image. Returns the unpublished rows. */
async function publishLate(
  context: RelayContext,
  rows: readonly StreamRow[],
  breaker: BusBreaker,
  inTime: () => boolean,
): Promise<Unpublished[]> {
  const ofProducers = rows.filter(({ producerUntil }) => producerUntil !== undefined);
  const own = rows.filter(({ producerUntil }) => producerUntil === undefined);
  const unpublished = await Promise.all([
    publishClaimed(context, own, breaker, inTime),
    afterProducers(context, ofProducers).then((left) => publishClaimed(context, left, breaker, inTime)),
  ]);
  return unpublished.flat();
}

async function publishClaimed(
  context: RelayContext,
  rows: readonly StreamRow[],
  breaker: BusBreaker,
  inTime: () => boolean,
): Promise<Unpublished[]> {
  if (rows.length === 0) return [];
  const left = rows.filter((row) => breaker.isOpen(row.entry.source) || !inTime());
  const { claimed, failed } = await claimEvents(
    context,
    rows.filter((row) => !left.includes(row)),
  );
  reportMissedTurns(context, claimed);
  const outcomes = await publishEvents(context, claimed, breaker, inTime);
  const back = withOutcome(outcomes, 'bus', 'access', 'skipped', 'leaseTooShort');
  await releaseEvents(
    context,
    back.map((row) => ({ row, leaseUntil: row.bornLeaseUntil })),
  );
  return [...left, ...failed, ...back].map(keyOf);
}

function keyOf({ bornLeaseUntil, sequenceNumber }: StreamRow): Unpublished {
  return { bornLeaseUntil, sequenceNumber };
}

/**
 * Returns the time until even the most recent record of the batch would be claimed on redelivery: a mapping returns everything
 * from the first failure on, including published records.
 */
function untilNoLongerFresh(youngest: number, now: number): number {
  // The next delivery has the same recordedAt, but another clock may read it.
  const longest = FRESH_MS + CLOCK_SKEW_MS;
  return Math.min(longest, youngest + longest - now);
}

/**
 * Reads lazily the PENDING rows in the images of a batch. Other records are logged and skipped, because no record may stop the
 * stream. A row that appears twice is read once, because a table updates an item only once per call.
 */
function* readRecords(
  event: DynamoDBStreamEvent,
  { clock, telemetry }: Pick<RelayContext, 'clock' | 'telemetry'>,
): Generator<StreamRow> {
  const seen = new Set<string>();
  for (const record of recordsOf(event)) {
    // It is written with an event, whose own record follows or precedes it.
    if (record?.dynamodb?.Keys?.PK?.S?.startsWith(UNIQUE_PREFIX)) continue;
    const row = readRecord(record);
    if (row === undefined) {
      telemetry.log.warn('A stream record is not a new outbox row; it is left to the sweep', {
        eventID: record?.eventID,
      });
      continue;
    }
    // Success: the sweep publishes it in its due minute. A mapping filter would not do, because an engine may ignore it.
    if (row.dueAt !== undefined && row.dueAt + CLOCK_SKEW_MS >= clock.now()) continue;
    if (row.dueAt === undefined) reportClockDifference(row, telemetry);
    if (seen.has(row.key.SK)) continue;
    seen.add(row.key.SK); // a reference to the image's own string: 10,000 of them take 0.4 MB
    yield row;
  }
}

function recordsOf(event: DynamoDBStreamEvent): readonly DynamoDBRecord[] {
  return Array.isArray(event?.Records) ? event.Records : [];
}

function* rowsOf(records: readonly DynamoDBRecord[]): Generator<StreamRow> {
  for (const record of records) {
    const row = readRecord(record);
    if (row !== undefined) yield row;
  }
}

function reportClockDifference({ eventId, recordedAt }: StreamRow, telemetry: Telemetry): void {
  const differenceMs = Math.abs(recordedAt - eventIdTime(eventId));
  if (differenceMs <= CLOCK_DIFFERENCE_MAX_MS) return;
  telemetry.duration('ClockDifference', differenceMs);
  telemetry.log.warn(
    "A producer's clock differs from DynamoDB's by over a minute, or its commit was late: npx cdk-mailroom why <eventId> --story names it",
    { eventId, differenceMs },
  );
}

function readRecord(record: DynamoDBRecord): StreamRow | undefined {
  const { NewImage, SequenceNumber, ApproximateCreationDateTime } = record?.dynamodb ?? {};
  if (record?.eventName !== 'INSERT' || NewImage === undefined || SequenceNumber === undefined)
    return undefined;
  try {
    const row = pendingRow(unmarshall(NewImage as Parameters<typeof unmarshall>[0], READ_NUMBERS) as Item);
    if (row === undefined) return undefined;
    return {
      ...row,
      record,
      sequenceNumber: SequenceNumber,
      // A record without a time counts as old, and is claimed first.
      recordedAt: Number.isFinite(ApproximateCreationDateTime)
        ? Math.floor(Number(ApproximateCreationDateTime)) * 1_000
        : 0,
      bornLeaseUntil: row.leaseUntil,
    };
  } catch {
    return undefined;
  }
}
