import { fullness } from './capacity/limits.ts';
import { rateWhere } from './capacity/placement.ts';
import { planCapacity } from './capacity/plan.ts';
import { planRows } from './capacity/plan-rows.ts';
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
  run: async () => ({
    json: {
      capacity: KINDS.flatMap(targets).map((target) => {
        const plan = planCapacity(target);
        return { ...plan, firstLimit: plan.limits[0] };
      }),
    },
    tables: planTables(),
  }),
};

/** Plans for each kind of event, and the limits. */
export function planTables(): FigureTable[] {
  return [...KINDS.map(planTable), limitTable()];
}

type CapacityKind = (typeof KINDS)[number];

function targets({ payloadBytes, consumers }: CapacityKind) {
  return RATES.map((eventsPerSecond) => ({ eventsPerSecond, payloadBytes, consumers }));
}

function planTable(kind: CapacityKind): FigureTable {
  const columns = targets(kind).map((target) => planRows(planCapacity(target)));
  const names = columns[0]?.map(([name]) => name) ?? [];
  return {
    name: kind.table,
    title: `Resources by rate: ${kind.name}`,
    head: ['', ...RATES.map((rate) => `${rate.toLocaleString('en-US')} events/s`)],
    rows: names.map((name, row) => [name, ...columns.map((column) => column[row]?.[1] ?? '')]),
  };
}

/** The rate at which each limit is reached, lowest first. */
function limitTable(): FigureTable {
  const metAt = ({ payloadBytes, consumers }: CapacityKind, name: string) =>
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

/** Three digits are enough for values that rest on so many assumptions. */
function rounded(rate: number): string {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(rate)) - 2);
  return (Math.floor(rate / unit) * unit).toLocaleString('en-US');
}
