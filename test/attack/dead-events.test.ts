import { expect, it } from 'vitest';
import { createRelaySweep } from '../../lambdas/runtime/relay/relay-sweep.ts';
import { deadKey } from '../../lambdas/runtime/store/keys.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';
import { lambdaContext } from '../../testing/index.ts';
import { relayConfig, rig, runThrough } from '../support/runtime-rig.ts';

it('however many events are dead, the sweep stops counting in time and emits its metrics', async () => {
  const parts = rig();
  let pages = 0;
  const table: Table = {
    ...parts.table,
    query: async (query) => {
      if (query.pk !== deadKey(0, '').PK) return parts.table.query(query);
      pages += 1;
      await parts.clock.advance(1_000);
      const items = [{ PK: query.pk, SK: String(pages) }];
      return { items, cursor: pages < 1_000 ? items[0] : undefined };
    },
  };
  const sweep = createRelaySweep({ ...parts, table, config: relayConfig });
  const report = sweep({}, lambdaContext({ clock: parts.clock, timeoutMs: 60_000 }));
  const hangs = runThrough(parts.clock, report);
  expect(await hangs).toMatchObject({ complete: false, dead: pages });
  expect(pages).toBeLessThan(60);
  expect(parts.telemetry.counted('DeadEvents')).toBe(pages);
});
