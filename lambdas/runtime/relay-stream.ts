import { unmarshall } from '@aws-sdk/util-dynamodb';
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from 'aws-lambda';
import { type BusBreaker, createBusBreaker } from './bus-breaker.ts';
import { systemClock } from './clock.ts';
import { eventIdTime, systemRandomBytes } from './event-id.ts';
import { READ_NUMBERS } from './item-numbers.ts';
import { LEASE_MARGIN_MS, type PendingRow, pendingRow } from './pending-row.ts';
import { createRelay, type RelayHandlerDeps } from './relay.ts';
import type { Item } from './table.ts';
import { powertoolsTelemetry, type Telemetry } from './telemetry.ts';

/**
 * A record younger than this, whose born lease still lasts, is published without a claim. A batch is never handed
 * back to the mapping while one of its records is younger, so that a record which comes again is claimed first.
 */
export const FRESH_MS = 5_000;

/** A batch is handed back after this at the soonest: the mapping brings it again at once, and counts how often. */
export const HAND_BACK_MS = 5_000;

/** Above this difference between an event id's time and its record's, somebody's clock is wrong. */
const CLOCK_DIFFERENCE_MAX_MS = 60_000;

/** A record of the stream and the PENDING row in its image. */
interface StreamRow {
  readonly row: PendingRow;
  readonly sequenceNumber: string;
  /** When DynamoDB wrote it, epoch milliseconds, cut to the second. */
  readonly recordedAt: number;
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
 * @example
 * ```ts
 * export const handler = createRelayStream({ config, table, bus });
 * ```
 */
export function createRelayStream(
  deps: RelayHandlerDeps,
): (event: DynamoDBStreamEvent) => Promise<DynamoDBBatchResponse> {
  const { config, clock = systemClock, random = systemRandomBytes } = deps;
  const telemetry =
    deps.telemetry ?? powertoolsTelemetry({ service: 'mailroom-relay', tableName: config.tableName });
  const relay = createRelay({ ...deps, clock, random, telemetry }, 'stream');

  return async (event) => {
    // A record that comes twice in a batch is one: a table updates an item once in a call.
    const records = new Map(readRecords(event, telemetry).map((record) => [record.row.eventId, record]));
    const read = [...records.values()];
    const fresh = (row: PendingRow) =>
      Math.abs(clock.now() - (records.get(row.eventId)?.recordedAt ?? 0)) < FRESH_MS;
    const bornLeaseLasts = (row: PendingRow) =>
      row.leaseUntil - clock.now() > config.publishTimeoutMs + LEASE_MARGIN_MS;

    const breaker = createBusBreaker();
    const rows = read.map((record) => record.row);
    const early = rows.filter((row) => fresh(row) && bornLeaseLasts(row));
    const first = await relay.publish(early, breaker, fresh);

    // Late from the start, or when their turn came.
    const late = [...rows.filter((row) => !early.includes(row)), ...first.late];
    const unpublished = [
      ...first.failed.map(({ row }) => row),
      ...first.skipped,
      ...(await publishLate(late, breaker)),
    ];
    const failures = unpublished
      .filter((row) => row.leaseUntil > clock.now())
      .flatMap((row) => records.get(row.eventId) ?? []);
    if (failures.length > 0) await clock.sleep(Math.max(HAND_BACK_MS, untilNoLongerFresh(read)));
    telemetry.flush();
    return { batchItemFailures: failures.map(({ sequenceNumber }) => ({ itemIdentifier: sequenceNumber })) };
  };

  /**
   * Claims and publishes. What fails gets back the lease of its image, which is what a redelivery compares with.
   *
   * @returns what is not published, as its image has it
   */
  async function publishLate(rows: readonly PendingRow[], breaker: BusBreaker): Promise<PendingRow[]> {
    const open = rows.filter((row) => breaker.isOpen(row.entry.source));
    const tried = rows.filter((row) => !open.includes(row));
    const images = new Map(tried.map((row) => [row.eventId, row]));
    const { claimed, failed } = await relay.claim(tried);
    const report = await relay.publish(claimed, breaker);
    const back = [...report.failed.map(({ row }) => row), ...report.skipped, ...report.late].flatMap(
      (row) => {
        const image = images.get(row.eventId);
        return image === undefined ? [] : [{ row, leaseUntil: image.leaseUntil, image }];
      },
    );
    await relay.release(back);
    return [...open, ...failed, ...back.map(({ image }) => image)];
  }

  /**
   * How long until even the youngest record of the batch would be claimed first when it comes again: a mapping hands
   * back everything from the first failure on, what was published too.
   */
  function untilNoLongerFresh(records: readonly StreamRow[]): number {
    const youngest = Math.max(...records.map((record) => record.recordedAt));
    // recordedAt is cut to the second, and the next delivery may be read under another clock.
    const longest = 1_000 + FRESH_MS + LEASE_MARGIN_MS;
    return Math.min(longest, youngest + longest - clock.now());
  }
}

/** The PENDING rows in the images of a batch. What is none is logged and left: no record may stop the stream. */
function readRecords(event: DynamoDBStreamEvent, telemetry: Telemetry): StreamRow[] {
  const records: readonly DynamoDBRecord[] = Array.isArray(event?.Records) ? event.Records : [];
  return records.flatMap((record) => {
    const read = readRecord(record);
    if (read === undefined) {
      telemetry.log.warn('A stream record is no new outbox row; left to the sweep', {
        eventID: record?.eventID,
      });
      return [];
    }
    const difference = Math.abs(read.recordedAt - eventIdTime(read.row.eventId));
    if (difference > CLOCK_DIFFERENCE_MAX_MS) {
      telemetry.duration('ClockDifference', difference);
      telemetry.log.warn(
        'The clock of a producer differs from DynamoDB by over a minute, or its commit was late',
        {
          eventId: read.row.eventId,
          differenceMs: difference,
        },
      );
    }
    return [read];
  });
}

function readRecord(record: DynamoDBRecord): StreamRow | undefined {
  const { NewImage, SequenceNumber, ApproximateCreationDateTime } = record?.dynamodb ?? {};
  if (record?.eventName !== 'INSERT' || NewImage === undefined || SequenceNumber === undefined)
    return undefined;
  try {
    const row = pendingRow(unmarshall(NewImage as Parameters<typeof unmarshall>[0], READ_NUMBERS) as Item);
    if (row === undefined) return undefined;
    return {
      row,
      sequenceNumber: SequenceNumber,
      // Without a time it is old, and so claimed first.
      recordedAt: Number.isFinite(ApproximateCreationDateTime)
        ? Math.floor(Number(ApproximateCreationDateTime)) * 1_000
        : 0,
    };
  } catch {
    return undefined;
  }
}
