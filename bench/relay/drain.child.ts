import pMap from 'p-map';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { batchEntries } from '../../lambdas/runtime/bus/event-bus.ts';
import { type PendingRow, pendingRow } from '../../lambdas/runtime/outbox/pending-row.ts';
import { createRelaySweep } from '../../lambdas/runtime/relay/relay-sweep.ts';
import { minuteOf } from '../../lambdas/runtime/store/event-id.ts';
import { outboxPartition } from '../../lambdas/runtime/store/keys.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import { answer, relayPorts } from './ports.ts';

/** The backlog that a fresh process publishes. */
export interface DrainTask {
  /** By the sweep; or directly, without claim and mark, as the floor. */
  readonly how: 'sweep' | 'direct';
  readonly concurrency: number;
  /** When the backlog was written, in epoch milliseconds. */
  readonly from: number;
  readonly to: number;
}

/** The result. */
export interface Drained {
  readonly published: number;
  readonly seconds: number;
  readonly passes: number;
}

/** The maximum number of passes over a backlog. */
const PASSES_MAX = 20;

const task = JSON.parse(process.argv[2] ?? '') as DrainTask;
const { deps } = relayPorts();

async function sweep(): Promise<Drained> {
  const handler = createRelaySweep({ ...deps, concurrency: task.concurrency });
  const startedAt = performance.now();
  let published = 0;
  for (let passes = 1; passes <= PASSES_MAX; passes += 1) {
    const report = await handler({}, { getRemainingTimeInMillis: () => 55_000 });
    published += report.published;
    if (report.complete && report.pending === 0)
      return { published, passes, seconds: (performance.now() - startedAt) / 1_000 };
  }
  throw new Error(`Events are still unpublished after ${PASSES_MAX} passes`);
}

async function direct(): Promise<Drained> {
  const rows = await backlog();
  const startedAt = performance.now();
  await pMap(
    batchEntries(rows),
    (batch) =>
      deps.bus.put(
        batch.map(({ entry }) => entry),
        deps.config.publishTimeoutMs,
      ),
    { concurrency: task.concurrency },
  );
  return { published: rows.length, passes: 0, seconds: (performance.now() - startedAt) / 1_000 };
}

async function backlog(): Promise<PendingRow[]> {
  const rows: PendingRow[] = [];
  for (let minute = task.from - (task.from % MINUTE_MS); minute < task.to; minute += MINUTE_MS) {
    for (let shard = 0; shard < deps.config.shards; shard += 1) {
      const pk = outboxPartition(minuteOf(minute), shard);
      let cursor: Item | undefined;
      do {
        const page = await deps.table.query({ pk, where: { status: 'PENDING' }, cursor });
        rows.push(...page.items.flatMap((item) => pendingRow(item) ?? []));
        cursor = page.cursor;
      } while (cursor !== undefined);
    }
  }
  return rows;
}

answer(await (task.how === 'sweep' ? sweep() : direct()));
