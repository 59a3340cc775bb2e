import { expect, test } from 'vitest';
import { bandsOf } from '../../../../../cli/page/client/flow/run-figures.ts';

test('a short run has a bar for each second, and each band its own axis', () => {
  const run = bandsOf({ placed: [9, 11], published: [30, 52], processed: [0, 0] });
  expect(run).toEqual({
    barS: 1,
    spanMs: 2_000,
    bands: [
      { name: 'Orders placed', total: 20, peak: 11, top: 15, bars: [9, 11] },
      { name: 'Events published', total: 82, peak: 52, top: 60, bars: [30, 52] },
      { name: 'Messages processed', total: 0, peak: 0, top: 1, bars: [0, 0] },
    ],
  });
});

test('a long run has at most 60 bars, which stand for the same time and are averages per second', () => {
  const placed = Array.from({ length: 899 }, () => 2);
  const { barS, spanMs, bands } = bandsOf({ placed, published: placed, processed: placed });
  expect({ barS, spanMs, bars: bands[0]?.bars.length }).toEqual({ barS: 15, spanMs: 900_000, bars: 60 });
  expect(bands[0]?.bars[0]).toBe(2);
  expect(bands[0]?.total).toBe(1_798);
  const longest = Array.from({ length: 7_200 }, () => 1);
  const run = bandsOf({ placed: longest, published: longest, processed: longest });
  expect(run.bands[0]?.bars).toHaveLength(60);
});

test('a run without orders has no bars', () => {
  expect(bandsOf({ placed: [], published: [], processed: [] }).spanMs).toBe(0);
});
