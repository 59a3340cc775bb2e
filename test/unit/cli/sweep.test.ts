import { expect, test } from 'vitest';
import { sweepWhole } from '../../../cli/changes/sweep.ts';
import type { SweepRange, SweepRangeReport } from '../../../lambdas/runtime/relay/sweep-range.ts';

/** A sweep function that answers one after the other, and keeps what it was asked. */
function answers(...reports: readonly Partial<SweepRangeReport>[]) {
  const asked: SweepRange[] = [];
  return {
    asked,
    call: async (range: SweepRange): Promise<SweepRangeReport> => {
      const report = reports[Math.min(asked.push(range), reports.length) - 1];
      return { published: 0, pending: 0, sweptTo: range.since, complete: false, ...report };
    },
  };
}

test('a long range goes on from where the call before came to', async () => {
  const { asked, call } = answers(
    { published: 5, pending: 1, sweptTo: 40 },
    { published: 2, pending: 2, sweptTo: 100, complete: true },
  );
  const seen: number[] = [];
  const report = await sweepWhole(call, { since: 10, until: 100 }, ({ sweptTo }) => seen.push(sweptTo));
  expect(report).toEqual({ published: 7, pending: 3, sweptTo: 100, complete: true });
  expect(asked).toEqual([
    { since: 10, until: 100 },
    { since: 40, until: 100 },
  ]);
  expect(seen).toEqual([40, 100]);
});

test('a full minute takes as many calls as needed; a sweep without progress is stopped', async () => {
  const busy = { published: 9 };
  const { asked, call } = answers(busy, busy, busy, {}, busy, {}, {});
  const report = await sweepWhole(call, { since: 10, until: 100 }, () => {});
  expect(report).toEqual({ published: 36, pending: 0, sweptTo: 10, complete: false });
  expect(asked).toHaveLength(7);
});

test('it stops between two calls on request', async () => {
  const stop = new AbortController();
  const { asked, call } = answers({ published: 1, sweptTo: 20 });
  await sweepWhole(call, { since: 10, until: 100 }, () => stop.abort(), stop.signal);
  expect(asked).toHaveLength(1);
});
