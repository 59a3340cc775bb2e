import { expect, it } from 'vitest';
import { BEHIND_MAX_MS } from '../../../cli/terminal/aws-clock.ts';
import { fingerprintText, when } from '../../../cli/terminal/listing.ts';
import { fingerprint } from '../../../lambdas/runtime/base/fingerprint.ts';

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

it.each([
  ['', 'x'.repeat(400), true],
  ['payments ', 'x'.repeat(400), true],
  ['payments ', 'the bank is closed', false],
])('a cause that was cut ends with a mark: %s…', (prefix, message, isCut) => {
  const text = `${prefix}${fingerprint(new Error(message))}`;
  expect(fingerprintText(text)).toBe(isCut ? `${text}…` : text);
});
