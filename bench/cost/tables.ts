import { itemBytes } from '../../lambdas/runtime/store/item-size.ts';
import type { System } from '../alternatives/system.ts';
import type { Workload } from '../alternatives/workload.ts';
import { MINUTES_PER_MONTH } from '../assumptions.ts';
import type { FigureTable } from '../part.ts';
import { LARGE_PAYLOADS, MAILROOM, ORDER_AND_TIME, publishedRow } from './mailroom.ts';
import { type Dollars, type EventUsage, total, type Usage } from './measure.ts';

/** The measured payload sizes in bytes. */
export const PAYLOADS = [200, 1_024, 4_096] as const;

/** The measured sizes of large payloads in bytes. */
export const LARGE = [4_096, 20_480, 262_144] as const;

/** The payload of tables that show only one. */
const PAYLOAD = 1_024;

/** A system under a workload. */
export interface Measured {
  readonly system: System;
  readonly workload: Workload;
  readonly event: EventUsage;
  readonly usd: Dollars;
}

/** The cost of one minute of a system, independent of its load. */
export interface StandingCost {
  readonly system: System;
  readonly eventsPerSecond: number;
  readonly payloadBytes: number;
  readonly perMinute: Usage;
  readonly usdPerMonth: number;
}

/** The price by payload, for runs with one consumer and no failures. The last column is the cost per minute at the highest rate. */
export function priceTable(plain: readonly Measured[], standing: readonly StandingCost[]): FigureTable {
  const rate = Math.max(0, ...standing.map(({ eventsPerSecond }) => eventsPerSecond));
  const shown = standing.filter((each) => each.payloadBytes === PAYLOAD && each.eventsPerSecond === rate);
  const byTheMinute = ({ standing: minute }: System) =>
    shown.find(({ system }) => system.standing === minute);
  return {
    name: 'cost',
    title: 'A million events, one consumer, US dollars',
    head: [
      'system',
      'publishes',
      'effects',
      ...PAYLOADS.map(bytesText),
      `by the minute, ${bytesText(PAYLOAD)}`,
    ],
    rows: systemsOf(plain).map((system) => {
      const minute = byTheMinute(system);
      return [
        system.name,
        system.promise.publishes,
        system.promise.effects,
        ...PAYLOADS.map((payloadBytes) => price(plain, system, { payloadBytes })),
        dollars((minute && usdPerMillionEvents(minute)) ?? 0),
      ];
    }),
  };
}

/** The cost by service, for one payload. */
export function servicesTable(plain: readonly Measured[]): FigureTable {
  return {
    name: 'cost-services',
    title: `Cost by service: ${bytesText(PAYLOAD)}, one consumer`,
    head: [
      ...['system', 'write units', 'read units', 'DynamoDB calls'],
      ...['DynamoDB', 'bus', 'queue', 'Lambda', 'logs', 'storage'],
    ],
    rows: systemsOf(plain).map((system) => {
      const { event, usd } = find(plain, system);
      const { writeUnits, readUnits, dynamodbCalls } = event.whole;
      const { dynamodb, bus, queue, lambda, logs, storage } = usd;
      return [
        system.name,
        ...[writeUnits, readUnits, dynamodbCalls].map(units),
        ...[dynamodb, bus, queue, lambda, logs, storage].map(dollars),
      ];
    }),
  };
}

/** Mailroom's steps. Write and relay are the same for every kind of handler. */
export async function stepsTable(plain: readonly Measured[]): Promise<FigureTable> {
  const published = await Promise.all(PAYLOADS.map(publishedRow));
  const { transactional, leased, 'leased, once': once } = MAILROOM;
  const row = (title: string, system: System, step: string) => {
    const usages = PAYLOADS.map((payloadBytes) =>
      find(plain, system, { payloadBytes }).event.steps.get(step),
    );
    const calls = units(usages[0]?.dynamodbCalls ?? 0);
    return [title, calls, ...usages.map((usage) => units(usage?.writeUnits ?? 0))];
  };
  return {
    name: 'cost-steps',
    title: 'Write units of one event in Mailroom, by step',
    head: ['step', 'DynamoDB calls', ...PAYLOADS.map(bytesText)],
    rows: [
      ['outbox row, bytes', '', ...published.map((item) => units(itemBytes(item)))],
      row('write: domain row and outbox row', transactional, 'write'),
      row('relay: mark', transactional, 'relay'),
      row('consume: transactional handler', transactional, 'consume'),
      row('consume: leased handler, ctx.commit', leased, 'consume'),
      row('consume: leased handler, ctx.once and ctx.commit', once, 'consume'),
    ],
  };
}

/** Large payloads in the row and in S3. */
export function payloadTable(runs: readonly Measured[]): FigureTable {
  return {
    name: 'cost-payloads',
    title:
      'Large payloads in the row and in S3, one consumer: units of one event, and US dollars per million',
    head: [
      'system',
      ...LARGE.map((bytes) => `write units, ${bytesText(bytes)}`),
      ...LARGE.map((bytes) => `USD, ${bytesText(bytes)}`),
    ],
    rows: LARGE_PAYLOADS.flatMap((system) => {
      const sizes = LARGE.map((payloadBytes) => find(runs, system, { payloadBytes }));
      const writeUnits = sizes.map(({ event }) => units(event.whole.writeUnits));
      const s3 = [
        'of which S3',
        ...LARGE.map(() => units(0)),
        ...sizes.map(({ usd }) => dollars(usd.objects)),
      ];
      const row = [system.name, ...writeUnits, ...sizes.map(({ usd }) => dollars(total(usd)))];
      return sizes.some(({ usd }) => usd.objects > 0) ? [row, s3] : [row];
    }),
  };
}

/** Batch handlers, ordered and limited consumers, unique and scheduled events and bridges, beside ordinary ones. */
export function orderTable(plain: readonly Measured[]): FigureTable {
  const { transactional, leased } = MAILROOM;
  return {
    name: 'cost-order',
    title:
      'Batched, ordered, limited, scheduled and forwarded events, one consumer: units of one event, and US dollars per million',
    head: [
      'system',
      ...PAYLOADS.map((bytes) => `write units, ${bytesText(bytes)}`),
      'read units',
      ...PAYLOADS.map((bytes) => `USD, ${bytesText(bytes)}`),
    ],
    rows: [transactional, leased, ...ORDER_AND_TIME].map((system) => {
      const runs = PAYLOADS.map((payloadBytes) => find(plain, system, { payloadBytes }));
      return [
        system.name,
        ...runs.map(({ event }) => units(event.whole.writeUnits)),
        units(runs[0]?.event.whole.readUnits ?? 0),
        ...runs.map(({ usd }) => dollars(total(usd))),
      ];
    }),
  };
}

/** The additional cost of more consumers and failures, and the cost of an event that arrives alone. */
export function casesTable(runs: readonly Measured[]): FigureTable {
  const cases: readonly (readonly [string, Partial<Workload>])[] = [
    ['1 consumer', { consumers: 1, retries: 0 }],
    ['and 1 % fails', { consumers: 1, retries: 1 }],
    ['3 consumers', { consumers: 3, retries: 0 }],
    ['and 1 % fails', { consumers: 3, retries: 1 }],
    ['1 consumer, events come alone', { batchSize: 1 }],
  ];
  return {
    name: 'cost-cases',
    title: `Three consumers, 1 % failing once, single events: ${bytesText(PAYLOAD)}, US dollars per million`,
    head: ['system', ...cases.map(([title]) => title)],
    rows: systemsOf(runs).map((system) => [
      system.name,
      ...cases.map(([, part]) => price(runs, system, part)),
    ]),
  };
}

/** The cost per minute. */
export function standingTable(standing: readonly StandingCost[]): FigureTable {
  const head = ['outbox', 'events/s', 'payload', 'read units a minute', 'DynamoDB calls'];
  return {
    name: 'cost-standing',
    title: 'Cost per minute: scans, polls and the sweep',
    head: [...head, 'USD a month', 'USD a million events'],
    rows: standing.map((each) => {
      const perMillion = usdPerMillionEvents(each);
      return [
        outboxName(each),
        each.eventsPerSecond,
        bytesText(each.payloadBytes),
        units(each.perMinute.readUnits),
        units(each.perMinute.dynamodbCalls),
        dollars(each.usdPerMonth),
        perMillion === undefined ? '' : dollars(perMillion),
      ];
    }),
  };
}

/** `two-table` from `two-table+transactional-inbox`, `mailroom` from `mailroom (leased)`. */
export function outboxName({ system }: StandingCost): string {
  return system.name.split(/[+ ]/)[0] ?? '';
}

/** The standing cost per million events at a rate; none at rate zero. */
export function usdPerMillionEvents({ usdPerMonth, eventsPerSecond }: StandingCost): number | undefined {
  const millions = (eventsPerSecond * 60 * MINUTES_PER_MONTH) / 1_000_000;
  return millions === 0 ? undefined : usdPerMonth / millions;
}

function systemsOf(runs: readonly Measured[]): System[] {
  return [...new Set(runs.map(({ system }) => system))];
}

function price(runs: readonly Measured[], system: System, part: Partial<Workload>): string {
  return dollars(total(find(runs, system, part).usd));
}

/** The run of a system. If no batch size is given, the first match: runs with full batches come first. */
function find(runs: readonly Measured[], system: System, part: Partial<Workload> = {}): Measured {
  const wanted = Object.entries({ payloadBytes: PAYLOAD, consumers: 1, retries: 0, ...part });
  const found = runs.find(
    ({ system: measured, workload }) =>
      measured === system && wanted.every(([name, value]) => workload[name as keyof Workload] === value),
  );
  if (found) return found;
  throw new Error(`${system.name} was not measured with ${JSON.stringify(wanted)}`);
}

function units(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 2 });
}

function dollars(value: number): string {
  return value.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}

function bytesText(bytes: number): string {
  return `${bytes.toLocaleString('en-US')} B`;
}
