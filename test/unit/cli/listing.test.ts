import { expect, it } from 'vitest';
import { BEHIND_MAX_MS } from '../../../cli/frame/aws-clock.ts';
import { when } from '../../../cli/frame/listing.ts';

const NOW = 1_800_000_000_000;

it.each([
  [-61_000, '1 min 1 s ago'],
  [-BEHIND_MAX_MS - 1_000, '3 s ago'],
  [-BEHIND_MAX_MS, 'now'],
  [BEHIND_MAX_MS, 'now'],
  [61_000, 'in 1 min 1 s'],
])('a time %i ms from now is listed as "%s"', (fromNowMs, text) => {
  expect(when(NOW + fromNowMs, NOW)).toBe(text);
});
