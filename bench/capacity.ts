import { fullness } from './capacity/limits.ts';
import { SWEEP_SECONDS_MAX } from './capacity/load.ts';
import { rateWhere } from './capacity/placement.ts';
import { type CapacityPlan, planCapacity } from './capacity/plan.ts';
import type { FigureTable, Part } from './part.ts';

/** Small events with one consumer, and larger ones with three. */
const KINDS = [
  { table: 'capacity', name: '200 B, 1 consumer', payloadBytes: 200, consumers: 1 },
  { table: 'capacity-large', name: '1 KB, 3 consumers', payloadBytes: 1_024, consumers: 3 },
] as const;

const RATES = [100, 10_000, 1_000_000];

/** Computes the resources for a rate of events and the limits it reaches, from AWS quotas and the code's settings. */
export const capacity: Part = {
  name: 'capacity',
  title: 'resources for 100, 10,000 and 1,000,000 events per second',
  run: async ({ target }) => {
    const plans = target === undefined ? KINDS.flatMap(plansOf) : [planCapacity(target)];
    return {
      json: { capacity: plans.map((plan) => ({ ...plan, firstLimit: plan.limits[0] })) },
      tables: target === undefined ? capacityTables() : plans.map(ownPlanTable),
    };
  },
};

/** Plans for each kind of event, and the limits. */
export function capacityTables(): FigureTable[] {
  return [...KINDS.map(planTable), limitTable()];
}

type EventKind = (typeof KINDS)[number];

function plansOf({ payloadBytes, consumers }: EventKind): CapacityPlan[] {
  return RATES.map((eventsPerSecond) => planCapacity({ eventsPerSecond, payloadBytes, consumers }));
}

function planTable(kind: EventKind): FigureTable {
  const columns = plansOf(kind).map(planRows);
  return {
    name: kind.table,
    title: `Resources by rate: ${kind.name}`,
    head: ['', ...RATES.map((rate) => `${rate.toLocaleString('en-US')} events/s`)],
    rows: columns[0]?.map(([name], row) => [name, ...columns.map((column) => column[row]?.[1] ?? '')]) ?? [],
  };
}

/** The plan for a chosen rate, with what follows from it and the limits in its way. */
function ownPlanTable(plan: CapacityPlan): FigureTable {
  const { eventsPerSecond, payloadBytes, consumers } = plan.target;
  const bytes = payloadBytes.toLocaleString('en-US');
  return {
    name: 'capacity-own',
    title: `Resources: ${bytes} B, ${consumers} ${consumers === 1 ? 'consumer' : 'consumers'}`,
    head: ['', `${eventsPerSecond.toLocaleString('en-US')} events/s`],
    rows: [...planRows(plan), ...planDetails(plan)],
  };
}

/** The rate at which each limit is reached, lowest first. */
function limitTable(): FigureTable {
  const metAt = ({ payloadBytes, consumers }: EventKind, name: string) =>
    rateWhere((eventsPerSecond) => {
      const { limits } = planCapacity({ eventsPerSecond, payloadBytes, consumers });
      return limits.every((limit) => limit.name !== name || fullness(limit) <= 1);
    });
  const limits = planCapacity({ eventsPerSecond: 1 }).limits.map(({ name, what, remedy }) => ({
    rates: KINDS.map((kind) => metAt(kind, name)),
    title: `${name}: ${what}`,
    remedy,
  }));
  limits.sort((a, b) => (a.rates[0] ?? 0) - (b.rates[0] ?? 0));
  return {
    name: 'capacity-limits',
    title: 'Limits, by the events per second that reach them',
    head: ['limit', ...KINDS.map(({ name }) => name), 'what to do'],
    rows: limits.map(({ rates, title, remedy }) => [title, ...rates.map(rounded), remedy]),
  };
}

/** Three digits are enough for values that rest on many assumptions. */
function rounded(rate: number): string {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(rate)) - 2);
  return (Math.floor(rate / unit) * unit).toLocaleString('en-US');
}

/** The name and value of each line of a plan: its settings, the quotas it needs and its bill. */
function planRows({ mailrooms, mailroom, demand, limits, bill }: CapacityPlan): [string, string][] {
  const { stream, sweep, consumer, warmWriteUnits } = mailroom;
  const raised = limitsMet(limits).flatMap(({ name, quotaNeeded }) =>
    quotaNeeded === undefined ? [] : [`${name} to ${whole(quotaNeeded)}`],
  );
  const concurrency = mailrooms * (stream.concurrency + demand.consumers * consumer.concurrency);
  return [
    ['Mailrooms', whole(mailrooms)],
    ['peak events/s per Mailroom', fine(mailroom.eventsPerSecond)],
    ['`shards`', whole(mailroom.shards)],
    ['`warmThroughput`, write units/s', warmWriteUnits ? whole(warmWriteUnits) : 'not needed'],
    ['commits throttled (expected)', `${(mailroom.throttledShare * 100).toFixed(2)}%`],
    [`sweep reads, of at most ${SWEEP_SECONDS_MAX} s`, `${sweep.seconds.toFixed(1)} s`],
    ['Lambda concurrency, total', whole(concurrency)],
    ['quotas to raise', raised.join(', ') || 'none'],
    ['USD per month', whole(bill.total)],
    ['USD per million events', bill.perMillionEvents.toFixed(2)],
  ];
}

/** The lines that only the plan for a single rate shows: what follows from {@link planRows}, and the limits in its way. */
function planDetails({ mailrooms, mailroom, demand, limits }: CapacityPlan): [string, string][] {
  const { stream, consumer } = mailroom;
  const met = limitsMet(limits).map(({ name }) => name);
  return [
    ['partitions, and so stream shards', whole(mailroom.partitions)],
    ['`parallelizationFactor`', whole(stream.parallelizationFactor)],
    ['events per stream invocation', stream.eventsPerInvocation.toFixed(1)],
    ['concurrent stream functions', fine(stream.concurrency)],
    ['concurrent functions per consumer', fine(consumer.concurrency)],
    ['PutEvents calls/s, total', fine(mailrooms * stream.putEventsPerSecond)],
    ['deliveries/s, total', fine(mailrooms * mailroom.eventsPerSecond * demand.consumers)],
    ['limits reached, in order', met.join(', ') || `none; next: ${limits[0]?.name}`],
  ];
}

function limitsMet(limits: CapacityPlan['limits']): CapacityPlan['limits'] {
  return limits.filter((limit) => fullness(limit) > 1);
}

function whole(count: number): string {
  return Math.ceil(count).toLocaleString('en-US');
}

function fine(count: number): string {
  return count < 10 ? count.toLocaleString('en-US', { maximumSignificantDigits: 2 }) : whole(count);
}
