import { itemBytes } from '../../lambdas/runtime/store/item-size.ts';
import type { System, Workload } from '../alternatives/system.ts';
import { MINUTES_PER_MONTH } from '../assumptions.ts';
import type { FigureTable } from '../part.ts';
import { MAILROOM, publishedRow } from './mailroom.ts';
import { type Dollars, type EventUsage, total, type Usage } from './measure.ts';

/** The measured payload sizes in bytes. */
export const PAYLOADS = [200, 1_024, 4_096] as const;

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

/**
 * The price by payload, for runs with one consumer and no failures. It is the same in every run of the same code.
 *
 * @param standing - the cost per minute; the last column shows it at the highest rate
 */
export function priceTable(plain: readonly Measured[], standing: readonly StandingCost[]): FigureTable {
  const rate = Math.max(0, ...standing.map(({ eventsPerSecond }) => eventsPerSecond));
  const byTheMinute = (system: System) => {
    const found = standing.find(
      (each) =>
        each.system.standing === system.standing &&
        each.payloadBytes === PAYLOAD &&
        each.eventsPerSecond === rate,
    );
    return found ? (usdPerMillionEvents(found) ?? 0) : 0;
  };
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
    rows: systemsOf(plain).map((system) => [
      system.name,
      system.promise.publishes,
      system.promise.effects,
      ...PAYLOADS.map((payloadBytes) => dollars(total(find(plain, system, { payloadBytes }).usd))),
      dollars(byTheMinute(system)),
    ]),
  };
}

/** The cost by service, for one payload. */
export function servicesTable(plain: readonly Measured[]): FigureTable {
  return {
    name: 'cost-services',
    title: `Cost by service: ${bytesText(PAYLOAD)}, one consumer`,
    head: [
      'system',
      'write units',
      'read units',
      'DynamoDB calls',
      'DynamoDB',
      'bus',
      'queue',
      'Lambda',
      'logs',
      'storage',
    ],
    rows: systemsOf(plain).map((system) => {
      const { event, usd } = find(plain, system, { payloadBytes: PAYLOAD });
      const { writeUnits, readUnits, dynamodbCalls } = event.whole;
      return [
        system.name,
        ...[writeUnits, readUnits, dynamodbCalls].map(units),
        ...[usd.dynamodb, usd.bus, usd.queue, usd.lambda, usd.logs, usd.storage].map(dollars),
      ];
    }),
  };
}

/** Mailroom's steps. Write and relay are the same for every kind of handler. */
export async function stepsTable(plain: readonly Measured[]): Promise<FigureTable> {
  const rows = await Promise.all(PAYLOADS.map(publishedRow));
  const { transactional, leased, 'leased, once': once } = MAILROOM;
  const steps: readonly (readonly [title: string, system: System, step: string])[] = [
    ['write: domain row and outbox row', transactional, 'write'],
    ['relay: mark', transactional, 'relay'],
    ['consume: transactional handler', transactional, 'consume'],
    ['consume: leased handler, ctx.commit', leased, 'consume'],
    ['consume: leased handler, ctx.once and ctx.commit', once, 'consume'],
  ];
  return {
    name: 'cost-steps',
    title: 'Write units of one event in Mailroom, by step',
    head: ['step', 'DynamoDB calls', ...PAYLOADS.map(bytesText)],
    rows: [
      ['outbox row, bytes', '', ...rows.map((row) => units(itemBytes(row)))],
      ...steps.map(([title, system, step]) => {
        const usages = PAYLOADS.map((payloadBytes) =>
          find(plain, system, { payloadBytes }).event.steps.get(step),
        );
        return [
          title,
          units(usages[0]?.dynamodbCalls ?? 0),
          ...usages.map((usage) => units(usage?.writeUnits ?? 0)),
        ];
      }),
    ],
  };
}

/** The additional cost of more consumers and failures, and the cost of an event that arrives alone. */
export function casesTable(runs: readonly Measured[]): FigureTable {
  const cases = [
    { consumers: 1, retries: 0 },
    { consumers: 1, retries: 1 },
    { consumers: 3, retries: 0 },
    { consumers: 3, retries: 1 },
    { batchSize: 1 },
  ];
  return {
    name: 'cost-cases',
    title: `Three consumers, 1 % failing once, single events: ${bytesText(PAYLOAD)}, US dollars per million`,
    head: [
      'system',
      '1 consumer',
      'and 1 % fails',
      '3 consumers',
      'and 1 % fails',
      '1 consumer, events come alone',
    ],
    rows: systemsOf(runs).map((system) => [
      system.name,
      ...cases.map((part) => dollars(total(find(runs, system, { payloadBytes: PAYLOAD, ...part }).usd))),
    ]),
  };
}

/** The cost per minute. */
export function standingTable(standing: readonly StandingCost[]): FigureTable {
  return {
    name: 'cost-standing',
    title: 'Cost per minute: scans, polls and the sweep',
    head: [
      'outbox',
      'events/s',
      'payload',
      'read units a minute',
      'DynamoDB calls',
      'USD a month',
      'USD a million events',
    ],
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

function systemsOf(runs: readonly Measured[]): System[] {
  return [...new Set(runs.map(({ system }) => system))];
}

function find(runs: readonly Measured[], system: System, part: Partial<Workload>): Measured {
  // If no batch size is given, the first match: runs with full batches come first.
  const wanted = { payloadBytes: PAYLOAD, consumers: 1, retries: 0, ...part };
  const found = runs.find(
    ({ system: measured, workload }) =>
      measured === system &&
      Object.entries(wanted).every(([name, value]) => workload[name as keyof Workload] === value),
  );
  if (found) return found;
  throw new Error(`${system.name} was not measured with ${JSON.stringify(wanted)}`);
}

/** The standing cost per million events at a rate; none at rate zero. */
export function usdPerMillionEvents({ usdPerMonth, eventsPerSecond }: StandingCost): number | undefined {
  const millions = (eventsPerSecond * 60 * MINUTES_PER_MONTH) / 1_000_000;
  return millions === 0 ? undefined : usdPerMonth / millions;
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
