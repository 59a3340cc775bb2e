import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { stepPrinter } from '../../../localstack/step-printer.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A stream that keeps what is written to it. */
function stream({ isTTY = false, columns = 80 } = {}) {
  const written: string[] = [];
  return { isTTY, columns, write: (text: string) => written.push(text), text: () => written.join('') };
}

test('a log shows the start of each step, its activity every ten seconds, and its duration', () => {
  const log = stream();
  const steps = stepPrinter(log);
  steps.step('Building');
  vi.advanceTimersByTime(4_000);
  steps.detail('Orders/Api');
  vi.advanceTimersByTime(8_000);
  steps.step('Deploying');
  steps.end();
  expect(log.text()).toBe('Building\n  10 s  Orders/Api\n  done in 12 s\nDeploying\n  done in 0 s\n');
});

test('a terminal shows one live line per step, and its duration at the end', () => {
  const terminal = stream({ isTTY: true });
  const steps = stepPrinter(terminal);
  steps.step('Building');
  vi.advanceTimersByTime(1_000);
  steps.detail('Orders/Api');
  steps.say('All set.');
  const [begun, ticked, detailed, ...finished] = terminal.text().split('\r\u001b[K').slice(1);
  expect([begun, ticked, detailed]).toEqual(['Building', 'Building  1 s', 'Building  1 s  Orders/Api']);
  expect(finished.join('')).toBe('Building  1 s\nAll set.\n');
});

test('a live line is never wider than the terminal', () => {
  const terminal = stream({ isTTY: true });
  const steps = stepPrinter(terminal);
  steps.step('Building');
  steps.detail('x'.repeat(200));
  for (const line of terminal.text().split('\r\u001b[K')) expect(line.length).toBeLessThan(80);
  steps.end();
});

test('a terminal that does not report its width has 80 columns', () => {
  const terminal = stream({ isTTY: true, columns: 0 });
  const steps = stepPrinter(terminal);
  steps.step('Building');
  expect(terminal.text()).toBe('\r\u001b[KBuilding');
  steps.end();
});

test('a failed step has no duration, and nothing is written afterwards', () => {
  const log = stream();
  const steps = stepPrinter(log);
  steps.step('Building');
  steps.fail();
  vi.advanceTimersByTime(60_000);
  expect(log.text()).toBe('Building\n');
});
