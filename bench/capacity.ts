import { fullness } from './capacity/limits.ts';
import { rateWhere } from './capacity/placement.ts';
import { type CapacityTarget, planCapacity } from './capacity/plan.ts';
import { planRows } from './capacity/plan-rows.ts';
import { type Verdict, verdictsOn } from './capacity/verdicts.ts';
import type { FigureTable, Part } from './part.ts';

/** Small events with one consumer, and larger ones with three. */
const KINDS = [
  { name: '200 B, 1 consumer', payloadBytes: 200, consumers: 1 },
  { name: '1 KB, 3 consumers', payloadBytes: 1_024, consumers: 3 },
] as const;

const RATES = [100, 10_000, 1_000_000];

/** How long a plan is simulated: ten minutes, and so ten placements of each shard. */
const PLAN_SECONDS = 600;

/** What a rate needs, computed, and whether that carries it, simulated. */
export const capacity: Part = {
  name: 'capacity',
  title: 'what carries 100, 10,000 and 1,000,000 events a second: planned, and simulated',
  run: async ({ say, quick }) => {
    const simulated = quick ? targets(KINDS[0]).slice(0, 1) : KINDS.flatMap((kind) => targets(kind));
    const runs = simulated.map((target) => {
      say(`simulating ${target.eventsPerSecond} events/s of ${target.payloadBytes} B`);
      return { target, verdicts: verdictsOn(target, PLAN_SECONDS) };
    });
    const verdictsOf = (kind: Kind) => runs.filter(({ target }) => target.payloadBytes === kind.payloadBytes);
    return {
      json: {
        capacity: runs.map(({ target, verdicts }) => {
          const plan = planCapacity(target);
          return { ...plan, firstLimit: plan.limits[0], simulated: verdicts };
        }),
      },
      tables: [...planTables(), ...KINDS.map((kind) => verdictTable(kind, verdictsOf(kind)))],
    };
  },
};

/** The tables that are computed and not simulated: the plans, and where the limits are. */
export function planTables(): FigureTable[] {
  return [...KINDS.map((kind) => planTable(kind)), limitTable()];
}

type Kind = (typeof KINDS)[number];

function targets({ payloadBytes, consumers }: Kind) {
  return RATES.map((eventsPerSecond) => ({ eventsPerSecond, payloadBytes, consumers }));
}

/** Where the table of a kind has its place in the docs. */
function placeOf(name: string, kind: Kind): string {
  return kind === KINDS[0] ? name : `${name}-large`;
}

function planTable(kind: Kind): FigureTable {
  const columns = targets(kind).map((target) => planRows(planCapacity(target)));
  const names = columns[0]?.map(([name]) => name) ?? [];
  return {
    name: placeOf('capacity', kind),
    title: `What a rate needs: ${kind.name}`,
    head: ['', ...RATES.map((rate) => `${rate.toLocaleString('en-US')} events/s`)],
    rows: names.map((name, row) => [name, ...columns.map((column) => column[row]?.[1] ?? '')]),
  };
}

/** At which rate each limit is met, first ones first. */
function limitTable(): FigureTable {
  const metAt = ({ payloadBytes, consumers }: Kind, name: string) =>
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
    title: 'At how many events a second a limit is met',
    head: ['limit', ...KINDS.map(({ name }) => name), 'what to do'],
    rows: limits.map(({ rates, title, remedy }) => [title, ...rates.map(rounded), remedy]),
  };
}

/** Three digits say enough of what rests on so many assumptions. */
function rounded(rate: number): string {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(rate)) - 2);
  return (Math.floor(rate / unit) * unit).toLocaleString('en-US');
}

function verdictTable(
  kind: Kind,
  runs: readonly { readonly target: CapacityTarget; readonly verdicts: readonly Verdict[] }[],
): FigureTable {
  return {
    name: placeOf('capacity-simulation', kind),
    title: `What the simulation says: ${kind.name}`,
    head: [
      'events/s in all',
      'situation',
      'events/s of one table',
      'shards',
      'partitions',
      'throttled',
      'worst minute',
      'p50 ms',
      'p99 ms',
      'waiting at the end',
      'verdict',
    ],
    rows: runs.flatMap(({ target, verdicts }) =>
      verdicts.map((verdict) => [
        target.eventsPerSecond.toLocaleString('en-US'),
        verdict.situation,
        Math.round(verdict.eventsPerSecond).toLocaleString('en-US'),
        verdict.shards,
        verdict.partitions === verdict.partitionsAtStart
          ? verdict.partitions
          : `${verdict.partitionsAtStart} to ${verdict.partitions}`,
        percent(verdict.throttledShare),
        percent(verdict.worstMinuteShare),
        verdict.p50Ms.toLocaleString('en-US'),
        verdict.p99Ms.toLocaleString('en-US'),
        verdict.waiting.toLocaleString('en-US'),
        words(verdict),
      ]),
    ),
  };
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share > 0 && share < 0.1 ? 2 : 0)}%`;
}

function words({ carries, planned }: Verdict): string {
  const said = carries ? 'carries it' : 'throttles';
  return planned === undefined || planned === carries ? said : `${said}: NOT AS PLANNED`;
}
