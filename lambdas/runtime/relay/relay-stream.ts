import { unmarshall } from '@aws-sdk/util-dynamodb';
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from 'aws-lambda';
import pMap from 'p-map';
import { PUT_EVENTS_ENTRIES_MAX } from '../bus/event-bus.ts';
import { CLOCK_SKEW_MS, systemClock } from '../clock.ts';
import { eventIdTime, systemRandomBytes } from '../store/event-id.ts';
import { READ_NUMBERS } from '../store/item-numbers.ts';
import type { Item } from '../store/table.ts';
import { powertoolsTelemetry, type Telemetry } from '../telemetry.ts';
import { type BusBreaker, createBusBreaker } from './bus-breaker.ts';
import { declaredSources } from './declared-sources.ts';
import { groupsOf } from './entry-batches.ts';
import { type PendingRow, pendingRow } from './pending-row.ts';
import { CONCURRENCY, createRelay, GROUP_ROWS, type RelayHandlerDeps } from './relay.ts';
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

/**
 * Makes the handler of the live path: the INSERT records of `OUTBOX#` items.
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
  const { config, clock = systemClock, random = systemRandomBytes, concurrency = CONCURRENCY } = deps;
  const telemetry =
    deps.telemetry ?? powertoolsTelemetry({ service: 'mailroom-relay', tableName: config.tableName });
  const relay = createRelay({ ...deps, clock, random, telemetry, concurrency }, 'stream');
  const declared = declaredSources(config, telemetry);
  // As many as keep the bus busy, and one more, because the last call of a group and its marks are waited for.
  const groupsAtOnce = 1 + Math.ceil((concurrency * PUT_EVENTS_ENTRIES_MAX) / GROUP_ROWS);

  const fresh = (row: StreamRow) => Math.abs(clock.now() - row.recordedAt) < FRESH_MS;

  return async (event) => {
    const breaker = createBusBreaker();
    const late: DynamoDBRecord[] = []; // from the start, or when their turn came
    const unpublished: Pick<StreamRow, 'bornLeaseUntil' | 'sequenceNumber'>[] = [];
    const undeclared: StreamRow[] = [];
    let youngest = 0;

    const inGroups = (rows: Iterable<StreamRow>, work: (group: StreamRow[]) => Promise<void>) =>
      pMap(groupsOf(rows, GROUP_ROWS), work, { concurrency: groupsAtOnce });
    const keep = (rows: readonly StreamRow[]) =>
      unpublished.push(
        ...rows.map(({ bornLeaseUntil, sequenceNumber }) => ({ bornLeaseUntil, sequenceNumber })),
      );

    function* freshRows(): Generator<StreamRow> {
      for (const row of readRecords(event, telemetry)) {
        if (!declared.has(row)) {
          undeclared.push(row);
          continue;
        }
        youngest = Math.max(youngest, row.recordedAt);
        if (fresh(row)) yield row;
        else late.push(row.record);
      }
    }
    await inGroups(freshRows(), async (group) => {
      const report = await relay.publish(group, breaker, fresh);
      late.push(...report.leaseTooShort.map(({ record }) => record));
      keep([...report.failed.map(({ row }) => row), ...report.skipped]);
    });
    declared.report(undeclared); // not handed back: the stream goes on, and the sweep counts them
    // Not a claim's time for each group: the function's own time is made for one, and a mark must not be cut off.
    const lastPublishAt = clock.now() + config.claimLeaseMs - config.publishTimeoutMs - CLOCK_SKEW_MS;
    await inGroups(rowsOf(late), async (group) => {
      keep(await publishLate(group, breaker, () => clock.now() < lastPublishAt));
    });

    const failures = unpublished.filter(({ bornLeaseUntil }) => bornLeaseUntil > clock.now());
    if (failures.length > 0) await clock.sleep(Math.max(HAND_BACK_MS, untilNoLongerFresh(youngest)));
    telemetry.flush();
    return { batchItemFailures: failures.map(({ sequenceNumber }) => ({ itemIdentifier: sequenceNumber })) };
  };

  /**
   * Claims and publishes while there is time. What fails gets back the lease of its image.
   *
   * @returns what is not published
   */
  async function publishLate(
    rows: readonly StreamRow[],
    breaker: BusBreaker,
    inTime: () => boolean,
  ): Promise<StreamRow[]> {
    const left = rows.filter((row) => breaker.isOpen(row.entry.source) || !inTime());
    const { claimed, failed } = await relay.claim(rows.filter((row) => !left.includes(row)));
    const report = await relay.publish(claimed, breaker, inTime);
    const back = [...report.failed.map(({ row }) => row), ...report.skipped, ...report.leaseTooShort];
    await relay.release(back.map((row) => ({ row, leaseUntil: row.bornLeaseUntil })));
    return [...left, ...failed, ...back];
  }

  /**
   * How long until even the youngest record of the batch would be claimed first when it comes again: a mapping hands
   * back everything from the first failure on, what was published too.
   */
  function untilNoLongerFresh(youngest: number): number {
    // The next delivery has the same recordedAt, and may be read under another clock.
    const longest = FRESH_MS + CLOCK_SKEW_MS;
    return Math.min(longest, youngest + longest - clock.now());
  }
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
