import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FigureTable, Part } from './part.ts';
import { streamBatch } from './relay/events.ts';
import type { Footprint, FootprintTask } from './relay/footprint.child.ts';
import { runChild, startStub } from './relay/processes.ts';

/** Batch sizes of the stream: from the mapping's default to its maximum (Lambda developer guide, "DynamoDB streams"). */
const BATCHES = [100, 1_000, 10_000];

interface MemoryFigure {
  readonly records: number;
  /** The batch as JSON. */
  readonly inputMb: number;
  /** The maximum of live memory in addition to the batch. */
  readonly peakMb: number;
  /** The maximum memory of the whole process. */
  readonly maxRssMb: number;
}

/** Measures the memory that a stream batch takes. */
export const memory: Part = {
  name: 'memory',
  title: 'memory of the stream handler, for batches of 100 to 10,000 records',
  run: async ({ say, quick }) => {
    const now = Date.now();
    const stub = await startStub({ rows: [], sweptTo: now, remembers: false });
    const folder = mkdtempSync(join(tmpdir(), 'mailroom-bench-'));
    try {
      const files = await Promise.all(
        BATCHES.slice(0, quick ? 2 : undefined).map(async (records) => {
          const text = JSON.stringify(await streamBatch(records, now));
          const file = join(folder, `${records}.json`);
          writeFileSync(file, text);
          return { records, file, bytes: Buffer.byteLength(text) };
        }),
      );
      const warmUpFile = files[0]?.file ?? '';
      const warmUpRounds = quick ? 5 : 200;
      const figures: MemoryFigure[] = [];
      for (const { records, file, bytes } of files) {
        const task: FootprintTask = { file, warmUpFile, warmUpRounds, now, collect: true };
        const { peakBytes } = await runChild<Footprint>('footprint', stub.endpoint, task, ['--expose-gc']);
        // Constant garbage collection would keep the process small.
        const free = { ...task, collect: false };
        const { maxRssBytes } = await runChild<Footprint>('footprint', stub.endpoint, free);
        figures.push({ records, inputMb: mb(bytes), peakMb: mb(peakBytes), maxRssMb: mb(maxRssBytes) });
        say(`${records} records: ${mb(peakBytes)} MB in addition to the batch of ${mb(bytes)} MB`);
      }
      return { json: { memory: figures }, tables: [tableOf(figures)] };
    } finally {
      rmSync(folder, { recursive: true });
      await stub.stop();
    }
  },
};

function tableOf(figures: readonly MemoryFigure[]): FigureTable {
  return {
    name: 'memory',
    title: 'Memory of the stream handler, MB',
    head: ['records in a batch', 'batch as JSON', 'other live memory, peak', 'whole process, peak'],
    rows: figures.map(({ records, inputMb, peakMb, maxRssMb }) => [records, inputMb, peakMb, maxRssMb]),
  };
}

function mb(bytes: number): number {
  return Number((bytes / 1_000_000).toFixed(1));
}
