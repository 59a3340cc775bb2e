import { MINUTE_MS } from '../lambdas/runtime/base/units.ts';
import { CALL_MS } from './assumptions.ts';
import type { FigureTable, Part } from './part.ts';
import type { Carried, CarryTask } from './relay/carry.child.ts';
import { startChild, startStub } from './relay/processes.ts';

/** The number of records per stream batch, and of rows per round of the sweep. */
const STREAM_BATCH = 1_000;
const SWEPT_ROWS = 4_800;

const PATHS: readonly CarryTask['path'][] = ['stream', 'sweep', 'single'];
const CONCURRENCIES = [1, 8, 32];

interface RelayFigure {
  readonly path: CarryTask['path'];
  readonly concurrency: number;
  readonly eventsPerSecond: number;
  readonly cpuMsPerEvent: number;
}

/** The number of turns of each path, and the length of a turn. */
interface Turns {
  readonly count: number;
  readonly warmUpMs: number;
  readonly turnMs: number;
}

/** Measures the events per second that one process carries from the outbox to the bus, and the CPU time per event. */
export const relay: Part = {
  name: 'relay',
  title: 'throughput of stream handler and sweep, compared with plain calls',
  run: async ({ say, quick }) => {
    const turns = quick
      ? { count: 1, warmUpMs: 100, turnMs: 200 }
      : { count: 4, warmUpMs: 1_500, turnMs: 1_500 };
    // The sweep has a fixed time: when the minute of the stub's rows reaches its first age.
    const sweepsAt = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
    const [from, to] = [sweepsAt - 2 * MINUTE_MS, sweepsAt - MINUTE_MS];
    const stub = await startStub({
      rows: [{ status: 'PENDING', count: SWEPT_ROWS, from, to }],
      sweptTo: sweepsAt - MINUTE_MS,
      remembers: false,
    });
    try {
      const figures: RelayFigure[] = [];
      for (const concurrency of quick ? [8] : CONCURRENCIES) {
        for (const figure of await inTurns(stub.endpoint, concurrency, sweepsAt, turns)) {
          figures.push(figure);
          say(`${figure.path}, ${concurrency} concurrent calls: ${figure.eventsPerSecond} events per second`);
        }
      }
      figures.sort((a, b) => PATHS.indexOf(a.path) - PATHS.indexOf(b.path));
      return { json: { relay: figures }, tables: [tableOf(figures)] };
    } finally {
      await stub.stop();
    }
  },
};

/**
 * Measures the paths in turns, each in a process that exists all the time: whatever else uses the processors slows down all of
 * them alike, so that their ratios can be compared.
 */
async function inTurns(
  endpoint: string,
  concurrency: number,
  sweepsAt: number,
  { count, warmUpMs, turnMs }: Turns,
): Promise<RelayFigure[]> {
  const children = await Promise.all(
    PATHS.map((path) => {
      const now = path === 'sweep' ? sweepsAt : Date.now();
      const task: CarryTask = { path, concurrency, batch: STREAM_BATCH, now };
      return startChild('carry', endpoint, task);
    }),
  );
  const sums = PATHS.map((path) => ({ path, events: 0, ms: 0, cpuMs: 0 }));
  for (const child of children) await child.ask<Carried>({ forMs: warmUpMs });
  for (let turn = 0; turn < count; turn += 1) {
    for (const [index, child] of children.entries()) {
      const { events, ms, cpuMs } = await child.ask<Carried>({ forMs: turnMs });
      const sum = sums[index];
      if (sum === undefined) continue;
      sum.events += events;
      sum.ms += ms;
      sum.cpuMs += cpuMs;
    }
  }
  for (const child of children) await child.stop();
  return sums.map(({ path, events, ms, cpuMs }) => ({
    path,
    concurrency,
    eventsPerSecond: Math.round((events / ms) * 1_000),
    cpuMsPerEvent: Number((cpuMs / events).toFixed(3)),
  }));
}

const NAMES = {
  stream: `stream handler, batches of ${STREAM_BATCH}`,
  sweep: `sweep, ${SWEPT_ROWS} rows of one minute`,
  single: 'one PutEvents and one UpdateItem per event',
};

function tableOf(figures: readonly RelayFigure[]): FigureTable {
  return {
    name: 'relay',
    title: `One process; every call answers after ${CALL_MS} ms; envelopes of 0.5 to 1.1 KB`,
    head: [
      'relay',
      'concurrent calls',
      'events per second',
      'compared with the baseline',
      'CPU ms per event',
    ],
    rows: figures.map(({ path, concurrency, eventsPerSecond, cpuMsPerEvent }) => {
      const plain = figures.find((figure) => figure.path === 'single' && figure.concurrency === concurrency);
      return [
        NAMES[path],
        concurrency,
        eventsPerSecond,
        `${(eventsPerSecond / (plain?.eventsPerSecond ?? Number.NaN)).toFixed(1)}×`,
        cpuMsPerEvent,
      ];
    }),
  };
}
