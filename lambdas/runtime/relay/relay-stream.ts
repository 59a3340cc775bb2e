import { unmarshall } from '@aws-sdk/util-dynamodb';
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from 'aws-lambda';
import pMap from 'p-map';
import { PUT_EVENTS_ENTRIES_MAX } from '../bus/event-bus.ts';
import { CLOCK_SKEW_MS } from '../clock.ts';
import { eventIdTime } from '../store/event-id.ts';
import { READ_NUMBERS } from '../store/item-numbers.ts';
import { claimEvents, releaseEvents } from '../store/outbox-transitions.ts';
import { type PendingRow, pendingRow } from '../store/pending-row.ts';
import type { Item } from '../store/table.ts';
import type { Telemetry } from '../telemetry.ts';
import { type BusBreaker, createBusBreaker } from './bus-breaker.ts';
import { declaredSources } from './declared-sources.ts';
import { groupsOf } from './entry-batches.ts';
import {
  CONCURRENCY,
  GROUP_ROWS,
  publishEvents,
  type RelayContext,
  type RelayHandlerDeps,
  relayContext,
  rowsThat,
} from './relay.ts';
import { FRESH_MS, HAND_BACK_MS } from './relay-timings.ts';

/** Above this difference between an event id's time and its record's, somebody's clock is wrong. */
const CLOCK_DIFFERENCE_MAX_MS = 60_000;

/** The PENDING row in the image of a record. */
interface StreamRow extends PendingRow {
  readonly record: DynamoDBRecord;
  readonly sequenceNumber: string;
  /** When DynamoDB wrote it, epoch milliseconds, cut to the second. */
  readonly recordedAt: number;
  /** The lease in the image, which is what a redelivery compares with: `leaseUntil` changes with a claim. */
  readonly bornLeaseUntil: number;
}

/** What is kept of a row that is not published: enough to hand its record back to the mapping. */
type Unpublished = Pick<StreamRow, 'bornLeaseUntil' | 'sequenceNumber'>;

/** What became of a group of new rows, apart from those that are done. */
interface GroupReport {
  /** Records that have to be claimed first: from the start, or when their turn came. */
  readonly late: readonly DynamoDBRecord[];
  readonly unpublished: readonly Unpublished[];
  /** Not handed back: the stream goes on, and the sweep counts them. */
  readonly undeclared: readonly StreamRow[];
  /** When the youngest declared row was recorded, epoch milliseconds; 0 when there is none. */
  readonly youngest: number;
}

/**
 * Makes the handler of the stream relay: it publishes the INSERT records of `OUTBOX#` items.
 *
 *     write                          publish                  sweep may take it
 *       |----------------- born lease (30 s) ------------------|
 *       |-- fresh (5 s) --|---- late: claimed before a publish --------------- …
 *
 * A fresh record is published at once and marked. Any other one (late, or delivered again: a mapping that retries
 * hands back its successes too) is claimed first, comparing with the lease in its image; a refused claim means
 * that somebody else has it, and is success. What the bus would not take is handed back to the mapping while its
 * born lease lasts; after that it is the sweep's. The handler is right also where the mapping ignores what it
 * hands back.
 *
 * Rows are read a few groups at a time, and of those that are done only the key is kept: a batch of 10,000 records takes
 * about 3 MB beside itself (`npm run bench -- memory`).
 *
 * @example
 * ```ts
 * export const handler = createRelayStream({ config, table, bus });
 * ```
 */
export function createRelayStream(
  deps: RelayHandlerDeps,
): (event: DynamoDBStreamEvent) => Promise<DynamoDBBatchResponse> {
  const { config, concurrency = CONCURRENCY } = deps;
  const context = relayContext(deps, 'stream', concurrency);
  const { clock, telemetry } = context;
  const declared = declaredSources(config, telemetry);
  // As many as keep the bus busy, and one more, because the last call of a group and its marks are waited for.
  const groupsAtOnce = 1 + Math.ceil((concurrency * PUT_EVENTS_ENTRIES_MAX) / GROUP_ROWS);
  const inGroups = <T>(rows: Iterable<StreamRow>, work: (group: StreamRow[]) => Promise<T>) =>
    pMap(groupsOf(rows, GROUP_ROWS), work, { concurrency: groupsAtOnce });

  return async (event) => {
    const breaker = createBusBreaker();
    const reports = await inGroups(readRecords(event, telemetry), (group) => {
      const rows = group.filter(declared.has);
      const undeclared = group.filter((row) => !declared.has(row));
      return publishNew(context, rows, undeclared, breaker);
    });
    declared.report(reports.flatMap(({ undeclared }) => undeclared));
    // Not a claim's time for each group: the function's own time is made for one, and a mark must not be cut off.
    const lastPublishAt = clock.now() + config.claimLeaseMs - config.publishTimeoutMs - CLOCK_SKEW_MS;
    const stillLate = await inGroups(rowsOf(reports.flatMap(({ late }) => late)), (group) =>
      publishLate(context, group, breaker, () => clock.now() < lastPublishAt),
    );

    const unpublished = [...reports.flatMap((report) => report.unpublished), ...stillLate.flat()];
    const failures = unpublished.filter(({ bornLeaseUntil }) => bornLeaseUntil > clock.now());
    const youngest = Math.max(0, ...reports.map((report) => report.youngest));
    if (failures.length > 0)
      await clock.sleep(Math.max(HAND_BACK_MS, untilNoLongerFresh(youngest, clock.now())));
    telemetry.flush();
    return { batchItemFailures: failures.map(({ sequenceNumber }) => ({ itemIdentifier: sequenceNumber })) };
  };
}

/** Publishes the fresh rows of a group without a claim. */
async function publishNew(
  context: RelayContext,
  rows: readonly StreamRow[],
  undeclared: readonly StreamRow[],
  breaker: BusBreaker,
): Promise<GroupReport> {
  const isFresh = (row: StreamRow) => Math.abs(context.clock.now() - row.recordedAt) < FRESH_MS;
  const fresh = rows.filter(isFresh);
  const late = rows.filter((row) => !fresh.includes(row));
  const outcomes = await publishEvents(context, fresh, breaker, isFresh);
  return {
    late: [...late, ...rowsThat(outcomes, 'leaseTooShort')].map(({ record }) => record),
    unpublished: rowsThat(outcomes, 'bus', 'access', 'skipped').map(keyOf),
    undeclared,
    youngest: Math.max(0, ...rows.map(({ recordedAt }) => recordedAt)),
  };
}

/** Claims and publishes while there is time. What fails gets back the lease of its image. Returns what is not published. */
async function publishLate(
  context: RelayContext,
  rows: readonly StreamRow[],
  breaker: BusBreaker,
  inTime: () => boolean,
): Promise<Unpublished[]> {
  const left = rows.filter((row) => breaker.isOpen(row.entry.source) || !inTime());
  const { claimed, failed } = await claimEvents(
    context,
    rows.filter((row) => !left.includes(row)),
  );
  const outcomes = await publishEvents(context, claimed, breaker, inTime);
  const back = rowsThat(outcomes, 'bus', 'access', 'skipped', 'leaseTooShort');
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
 * How long until even the youngest record of the batch would be claimed first when it comes again: a mapping hands
 * back everything from the first failure on, what was published too.
 */
function untilNoLongerFresh(youngest: number, now: number): number {
  // The next delivery has the same recordedAt, and may be read under another clock.
  const longest = FRESH_MS + CLOCK_SKEW_MS;
  return Math.min(longest, youngest + longest - now);
}

/**
 * The PENDING rows in the images of a batch, each read when it is asked for. What is none is logged and left: no record may
 * stop the stream. A row that comes twice is one: a table updates an item once in a call.
 */
function* readRecords(event: DynamoDBStreamEvent, telemetry: Telemetry): Generator<StreamRow> {
  const records: readonly DynamoDBRecord[] = Array.isArray(event?.Records) ? event.Records : [];
  const seen = new Set<string>();
  for (const record of records) {
    const row = readRecord(record);
    if (row === undefined) {
      telemetry.log.warn('A stream record is no new outbox row; left to the sweep', {
        eventID: record?.eventID,
      });
      continue;
    }
    reportClockDifference(row, telemetry);
    if (seen.has(row.key.SK)) continue;
    seen.add(row.key.SK); // the text of the image itself: 10,000 of them take 0.4 MB
    yield row;
  }
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
    'The clock of a producer differs from DynamoDB by over a minute, or its commit was late',
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
      // Without a time it is old, and so claimed first.
      recordedAt: Number.isFinite(ApproximateCreationDateTime)
        ? Math.floor(Number(ApproximateCreationDateTime)) * 1_000
        : 0,
      bornLeaseUntil: row.leaseUntil,
    };
  } catch {
    return undefined;
  }
}
