import { MINUTE_MS } from '../lambdas/runtime/relay/sweep-minutes.ts';
import { CALL_MS } from './assumptions.ts';
import type { FigureTable, Part } from './part.ts';
import type { Carried, CarryTask } from './relay/carry.child.ts';
import { runChild, startStub } from './relay/processes.ts';

/** The number of records per stream batch, and of rows per round of the sweep. */
const STREAM_BATCH = 1_000;
const SWEPT_ROWS = 4_800;

const PATHS: readonly CarryTask['path'][] = ['stream', 'sweep', 'single'];
const CONCURRENCIES = [1, 8, 32];

interface RelayFigure extends Carried {
  readonly path: CarryTask['path'];
  readonly concurrency: number;
}

/** Measures the events per second that one process carries from the outbox to the bus, and the CPU time per event. */
export const relay: Part = {
  name: 'relay',
  title: 'throughput of stream handler and sweep, compared with plain calls',
  run: async ({ say, quick }) => {
    const times = quick ? { warmUpMs: 100, measureMs: 200 } : { warmUpMs: 1_500, measureMs: 4_000 };
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
      for (const path of PATHS) {
        for (const concurrency of quick ? [8] : CONCURRENCIES) {
          const now = path === 'sweep' ? sweepsAt : Date.now();
          const task: CarryTask = { path, concurrency, batch: STREAM_BATCH, now, ...times };
          const carried = await runChild<Carried>('carry', stub.endpoint, task);
          figures.push({ path, concurrency, ...carried });
          say(`${path}, ${concurrency} concurrent calls: ${carried.eventsPerSecond} events per second`);
        }
      }
      return { json: { relay: figures }, tables: [tableOf(figures)] };
    } finally {
      await stub.stop();
    }
  },
};

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
