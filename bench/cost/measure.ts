import { CONCURRENCY } from '../../lambdas/runtime/relay/relay-context.ts';
import { itemBytes } from '../../lambdas/runtime/store/item-size.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import type { System } from '../alternatives/system.ts';
import { jumpingClock, START, type Workload } from '../alternatives/workload.ts';
import {
  CALL_CPU_MS,
  CALL_MS,
  EVENT_CPU_MS,
  GB_BYTES,
  LAMBDA_MB,
  LAMBDA_MB_PER_CORE,
  LOG_BYTES_PER_INVOCATION,
  MINUTES_PER_MONTH,
  OBJECT_DAYS,
  PRICES,
  STORED_ITEM_BYTES,
} from '../assumptions.ts';
import { createMeteredAws, type MeteredRequest } from '../aws/metered-aws.ts';

/** Requests and units of a run or a part of it; an average if it is per event. */
export interface Usage {
  readonly writeUnits: number;
  readonly readUnits: number;
  readonly dynamodbCalls: number;
  readonly busCalls: number;
  /** Billed events on the bus. */
  readonly busEvents: number;
  readonly queueRequests: number;
  readonly invocations: number;
  /** PutObject requests of S3. */
  readonly objectWrites: number;
  /** GetObject requests of S3. */
  readonly objectReads: number;
  /** Storage until its rows expire, in KB-months. Excludes rows that never expire, which are the service's own. */
  readonly storedKbMonths: number;
  /** Storage of objects in S3 until they expire, in KB-months. */
  readonly objectKbMonths: number;
}

/** The cost per million events, or per month, by service in US dollars. */
export type Dollars = ReturnType<typeof usdPerMillion>;

/** The usage of one event in one system, in total and by step: `write`, `relay`, `consume`. */
export interface EventUsage {
  readonly whole: Usage;
  readonly steps: ReadonlyMap<string, Usage>;
}

/** Runs a workload through a system and counts the usage of each event, without the standing cost. */
export async function measure(system: System, workload: Workload): Promise<EventUsage> {
  const aws = createMeteredAws(system.tables, { clock: jumpingClock() });
  await system.run(aws, workload);
  const requests = aws.requests().filter(({ step }) => step !== 'standing');
  const names = new Set(requests.map(({ step }) => step));
  const stepUsage = (name: string) =>
    usageOf(
      requests.filter(({ step }) => step === name),
      workload.events,
    );
  return {
    whole: {
      ...usageOf(requests, workload.events),
      storedKbMonths: sum(system.tables, ({ name }) => sum(aws.items(name), kbMonths)) / workload.events,
      objectKbMonths: ((aws.objects.bytes() / 1_000) * OBJECT_DAYS) / DAYS_PER_MONTH / workload.events,
    },
    steps: new Map([...names].map((name) => [name, stepUsage(name)])),
  };
}

/** Adds up requests. @param per - the number of events, or other units, to average over @default 1 */
export function usageOf(requests: readonly MeteredRequest[], per = 1): Usage {
  const of = (service: MeteredRequest['service']) =>
    requests.filter((request) => request.service === service);
  const objects = (operation: string) =>
    of('s3').filter((request) => request.operation === operation).length / per;
  return {
    writeUnits: sum(requests, ({ writeUnits }) => writeUnits) / per,
    readUnits: sum(requests, ({ readUnits }) => readUnits) / per,
    dynamodbCalls: of('dynamodb').length / per,
    busCalls: of('events').length / per,
    busEvents: sum(of('events'), ({ billed }) => billed) / per,
    queueRequests: sum(of('sqs'), ({ billed }) => billed) / per,
    invocations: sum(of('lambda'), ({ billed }) => billed) / per,
    objectWrites: objects('PutObject'),
    objectReads: objects('GetObject'),
    storedKbMonths: 0,
    objectKbMonths: 0,
  };
}

/**
 * The price of a million times this usage.
 *
 * @param lambdaMs - the functions' run time for it, see {@link lambdaMs}
 */
export function usdPerMillion(usage: Usage, lambdaMs: number) {
  const gbSeconds = (lambdaMs / 1_000) * (LAMBDA_MB / 1_024) * 1_000_000;
  const logGb = (usage.invocations * LOG_BYTES_PER_INVOCATION * 1_000_000) / GB_BYTES;
  return {
    dynamodb: usage.writeUnits * PRICES.writeUnitsPerMillion + usage.readUnits * PRICES.readUnitsPerMillion,
    bus: usage.busEvents * PRICES.busEventsPerMillion,
    queue: usage.queueRequests * PRICES.queueRequestsPerMillion,
    lambda: usage.invocations * PRICES.invocationsPerMillion + gbSeconds * PRICES.lambdaGbSecond,
    logs: logGb * PRICES.logsPerGb,
    storage: gbMonths(usage.storedKbMonths) * PRICES.storagePerGbMonth,
    objects:
      usage.objectWrites * PRICES.objectWritesPerMillion +
      usage.objectReads * PRICES.objectReadsPerMillion +
      gbMonths(usage.objectKbMonths) * PRICES.objectStoragePerGbMonth,
  };
}

/** A million times these KB-months, in GB-months. */
function gbMonths(kbMonths: number): number {
  return (kbMonths * 1_000 * 1_000_000) / GB_BYTES;
}

/** Adds the costs of all services. */
export function total(usd: Dollars): number {
  return sum(Object.values(usd), (each: number) => each);
}

/**
 * The functions' run time for a usage in milliseconds. Computed, for every system alike: CPU per event that a function receives
 * and per call, on the share of a core that its memory provides, and the waiting time of the calls, at the concurrency of
 * Mailroom's relay: systems that make one call after the other are not charged for it.
 *
 * @param handed - the number of events that functions receive
 */
export function lambdaMs(
  { dynamodbCalls, busCalls, objectWrites, objectReads }: Usage,
  handed: number,
): number {
  const calls = dynamodbCalls + busCalls + objectWrites + objectReads;
  const cpuMs = (handed * EVENT_CPU_MS + calls * CALL_CPU_MS) / (LAMBDA_MB / LAMBDA_MB_PER_CORE);
  return cpuMs + (calls * CALL_MS) / CONCURRENCY;
}

const DAYS_PER_MONTH = MINUTES_PER_MONTH / (24 * 60);

/** An item's size times its storage time, if TTL deletes it on time. */
function kbMonths(item: Item): number {
  // The names that Mailroom and Powertools give to the attribute.
  const expiresAt = Number(item.expiresAt ?? item.expiration ?? 0);
  const months = Math.max(0, expiresAt - START / 1_000) / (MINUTES_PER_MONTH * 60);
  return ((itemBytes(item) + STORED_ITEM_BYTES) / 1_000) * months;
}

function sum<T>(list: readonly T[], figure: (each: T) => number): number {
  return list.reduce((total, each) => total + figure(each), 0);
}
