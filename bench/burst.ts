import { BURST_MS, type BurstPlan, type BurstReport, simulateBurst } from '../test/support/burst.ts';
import type { FigureTable, Part } from './part.ts';

const ORDERS = 2_000;
const ORDERS_QUICK = 100;

/** The bursts of the table, by the name of their row. */
export const BURSTS: Readonly<Record<string, Omit<BurstPlan, 'orders'>>> = {
  'stream and sweep': { stream: true },
  'sweep alone': { stream: false },
  'sweep alone, `sweepEvery` 10 s': { stream: false, sweepEveryMs: 10_000 },
  'stream and sweep, with failures': { stream: true, failures: true },
  'sweep alone, with failures': { stream: false, failures: true },
};

/** Simulates the runtime with and without the stream relay, on its own clock. */
export const burst: Part = {
  name: 'burst',
  title: `${ORDERS.toLocaleString('en-US')} orders in ${BURST_MS / 60_000} minutes, simulated, with and without the stream relay`,
  run: async ({ say, quick }) => {
    const reports: Record<string, BurstReport> = {};
    for (const [name, plan] of Object.entries(BURSTS)) {
      say(name);
      reports[name] = await simulateBurst({ ...plan, orders: quick ? ORDERS_QUICK : ORDERS });
    }
    return { json: { burst: Object.entries(reports).map(burstRecord) }, tables: [burstTable(reports)] };
  },
};

export function burstTable(reports: Readonly<Record<string, BurstReport>>): FigureTable {
  return {
    name: 'burst',
    title: `${ORDERS.toLocaleString('en-US')} orders in ${BURST_MS / 60_000} minutes, simulated; seconds`,
    head: [
      'relay',
      'published after, median',
      'published after, most',
      'processed after, most',
      'last processed, after the last commit',
      'sweeps that published',
      'longest sweep',
      'published again',
    ],
    rows: Object.entries(reports).map(([name, report]) => {
      const { publishMs, processMs, lastProcessedMs, passes, republished } = report;
      const most = (times: readonly number[]) => seconds(times.at(-1) ?? 0);
      return [
        name,
        seconds(publishMs[Math.floor(publishMs.length / 2)] ?? 0),
        most(publishMs),
        most(processMs),
        seconds(lastProcessedMs),
        passes.length,
        seconds(Math.max(0, ...passes.map(({ ms }) => ms))),
        republished,
      ];
    }),
  };
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(1);
}

function burstRecord([relay, { publishMs, processMs, ...report }]: [string, BurstReport]) {
  const most = { publishedMs: publishMs.at(-1), processedMs: processMs.at(-1) };
  return { relay, orders: publishMs.length, ...most, ...report };
}
