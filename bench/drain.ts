import { MINUTE_MS } from '../lambdas/runtime/base/units.ts';
import type { FigureTable, Part, PartSettings } from './part.ts';
import type { Drained, DrainTask } from './relay/drain.child.ts';
import { RELAY_CONFIG } from './relay/events.ts';
import { runChild, startStub } from './relay/processes.ts';

/** Concurrent calls of the sweep and of direct publishing. */
const CONCURRENCY = 32;

/** The backlog, and the number of minutes over which it was written. */
const ROWS = 50_000;
const ROWS_QUICK = 2_000;
const BACKLOG_MINUTES = 10;

/** The number of published rows in the same table, spread evenly over their retention and the backlog's minutes. */
const BESIDE = [0, 10_000, 100_000, 1_000_000];

/** Measures how quickly the sweep publishes a backlog, and that the size of the table does not slow it down. */
export const drain: Part = {
  name: 'drain',
  title: 'time to sweep a backlog, compared with direct publishing',
  run: async (settings) => {
    const rows = settings.quick ? ROWS_QUICK : ROWS;
    const direct = await drained('direct', rows, 0, settings);
    const beside: { publishedRows: number; seconds: number; msPerEvent: number }[] = [];
    for (const publishedRows of settings.quick ? BESIDE.slice(0, 2) : BESIDE) {
      const { seconds } = await drained('sweep', rows, publishedRows, settings);
      beside.push({ publishedRows, seconds, msPerEvent: Number(((seconds * 1_000) / rows).toFixed(3)) });
    }
    const [alone, ...others] = beside;
    const result = {
      rows,
      seconds: alone?.seconds ?? 0,
      directSeconds: direct.seconds,
      concurrency: CONCURRENCY,
      beside: others,
    };
    return { json: { drain: result }, tables: [tableOf(rows, direct.seconds, beside)] };
  },
};

async function drained(
  how: DrainTask['how'],
  rows: number,
  published: number,
  { say }: PartSettings,
): Promise<Drained> {
  // The relay was off for ten minutes, until two minutes ago.
  const to = (Math.floor(Date.now() / MINUTE_MS) - 2) * MINUTE_MS;
  const from = to - BACKLOG_MINUTES * MINUTE_MS;
  const oldest = to - RELAY_CONFIG.publishedRetentionDays * 24 * 60 * MINUTE_MS;
  const stub = await startStub({
    rows: [
      { status: 'PENDING', count: rows, from, to },
      { status: 'PUBLISHED', count: published, from: oldest, to },
    ],
    sweptTo: from,
    remembers: true,
  });
  const task: DrainTask = { how, concurrency: CONCURRENCY, from, to };
  const found = await runChild<Drained>('drain', stub.endpoint, task);
  await stub.stop();
  if (found.published !== rows) throw new Error(`${found.published} of ${rows} rows were published`);
  say(`${how}, ${published} published rows in the table: ${found.seconds.toFixed(1)} s`);
  return { ...found, seconds: Number(found.seconds.toFixed(2)) };
}

function tableOf(
  rows: number,
  directSeconds: number,
  beside: readonly { publishedRows: number; seconds: number; msPerEvent: number }[],
): FigureTable {
  const ms = (seconds: number) => ((seconds * 1_000) / rows).toFixed(3);
  return {
    name: 'drain',
    title: `${rows} pending rows of ${BACKLOG_MINUTES} minutes, ${CONCURRENCY} concurrent calls`,
    head: ['relay', 'published rows in the table', 'seconds', 'ms per event', 'compared with the baseline'],
    rows: [
      ['baseline: no claims, no marks', '-', directSeconds, ms(directSeconds), '1.00×'],
      ...beside.map(({ publishedRows, seconds }) => [
        'the sweep',
        publishedRows,
        seconds,
        ms(seconds),
        `${(seconds / directSeconds).toFixed(2)}×`,
      ]),
    ],
  };
}
