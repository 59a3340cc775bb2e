import { MINUTE_MS } from '../lambdas/runtime/base/units.ts';
import { CALL_MS } from './assumptions.ts';
import type { FigureTable, Part } from './part.ts';
import { startChild, startServer } from './processes.ts';
import type { Carried, CarryTask } from './relay/carry.child.ts';
import type { StubContents } from './relay/stub.child.ts';

/** The number of records per stream batch, and of rows per round of the sweep. */
const STREAM_BATCH = 1_000;
const SWEPT_ROWS = 4_800;

/** The measured paths in the order of the table, with their names in it. */
const PATHS: Readonly<Record<CarryTask['path'], string>> = {
  stream: `stream handler, batches of ${STREAM_BATCH}`,
  sweep: `sweep, ${SWEPT_ROWS} rows of one minute`,
  single: 'one PutEvents and one UpdateItem per event',
};

interface RelayFigure {
  readonly path: CarryTask['path'];
  readonly concurrency: number;
  readonly eventsPerSecond: number;
  readonly cpuMsPerEvent: number;
}

/** Measures the events per second that one process carries from the outbox to the bus, and the CPU time per event. */
export const relay: Part = {
  name: 'relay',
  title: 'throughput of stream handler and sweep, compared with plain calls',
  run: async ({ say, quick }) => {
    // The sweep has a fixed time: when the minute of the stub's rows reaches its first age.
    const sweepsAt = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
    const [from, to] = [sweepsAt - 2 * MINUTE_MS, sweepsAt - MINUTE_MS];
    const contents: StubContents = { rows: SWEPT_ROWS, from, to };
    const stub = await startServer('relay/stub', contents);
    try {
      const figures: RelayFigure[] = [];
      for (const concurrency of quick ? [8] : [1, 8, 32]) {
        for (const figure of await inTurns(stub.endpoint, concurrency, sweepsAt, quick)) {
          figures.push(figure);
          say(`${figure.path}, ${concurrency} concurrent calls: ${figure.eventsPerSecond} events per second`);
        }
      }
      const order = Object.keys(PATHS);
      figures.sort((a, b) => order.indexOf(a.path) - order.indexOf(b.path));
      return { json: { relay: figures }, tables: [relayTable(figures)] };
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
  quick: boolean,
): Promise<RelayFigure[]> {
  const [turns, warmUpMs, turnMs] = quick ? [1, 100, 200] : [4, 1_500, 1_500];
  const measured = await Promise.all(
    (Object.keys(PATHS) as CarryTask['path'][]).map(async (path) => {
      const now = path === 'sweep' ? sweepsAt : Date.now();
      const task: CarryTask = { path, concurrency, batch: STREAM_BATCH, now };
      const child = await startChild('relay/carry', endpoint, task);
      return { path, child, events: 0, ms: 0, cpuMs: 0 };
    }),
  );
  for (const { child } of measured) await child.ask<Carried>({ forMs: warmUpMs });
  for (let turn = 0; turn < turns; turn += 1) {
    for (const sum of measured) {
      const { events, ms, cpuMs } = await sum.child.ask<Carried>({ forMs: turnMs });
      sum.events += events;
      sum.ms += ms;
      sum.cpuMs += cpuMs;
    }
  }
  for (const { child } of measured) await child.stop();
  return measured.map(({ path, events, ms, cpuMs }) => ({
    path,
    concurrency,
    eventsPerSecond: Math.round((events / ms) * 1_000),
    cpuMsPerEvent: Number((cpuMs / events).toFixed(3)),
  }));
}

function relayTable(figures: readonly RelayFigure[]): FigureTable {
  const head = ['relay', 'concurrent calls', 'events per second', 'compared with the baseline'];
  return {
    name: 'relay',
    title: `One process; every call answers after ${CALL_MS} ms; envelopes of 0.5 to 1.1 KB`,
    head: [...head, 'CPU ms per event'],
    rows: figures.map(({ path, concurrency, eventsPerSecond, cpuMsPerEvent }) => {
      const plain = figures.find((figure) => figure.path === 'single' && figure.concurrency === concurrency);
      const compared = eventsPerSecond / (plain?.eventsPerSecond ?? Number.NaN);
      return [PATHS[path], concurrency, eventsPerSecond, `${compared.toFixed(1)}×`, cpuMsPerEvent];
    }),
  };
}
