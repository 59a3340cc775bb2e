import { expect, it } from 'vitest';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { SWEEP_STATE_KEY } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { mailroom } from '../support/mailroom.ts';
import { get } from '../support/order-system.ts';
import { forgottenEvent } from '../support/stuck-events.ts';

it('a sweep publishes what was forgotten in a range, and nothing the second time', async () => {
  const { eventId } = await forgottenEvent(40 * 60_000);
  const sweptTo = Number((await get(SWEEP_STATE_KEY))?.sweptTo ?? 0); // none before the first pass
  const argv = ['sweep', '--since', '45m', '--until', '35m', '--json'];
  const run = await mailroom(...argv, '--reason', 'the stream was off');
  expect(run.code, run.err).toBe(0);
  const report = run.json();
  expect(report).toMatchObject({ published: 1, pending: 0, sweptTo: report.until, complete: true });
  expect(report.until - report.since).toBe(10 * 60_000);
  expect(await get(outboxKeyOf(eventId))).toMatchObject({ status: 'PUBLISHED', publishedBy: 'sweep' });
  // The ordinary passes have gone their own way.
  expect(Number((await get(SWEEP_STATE_KEY))?.sweptTo ?? 0)).toBeGreaterThanOrEqual(sweptTo);

  expect((await mailroom(...argv)).json()).toMatchObject({ published: 0, complete: true });
  const people = await mailroom(...argv.slice(0, -1));
  expect(people.out).toMatch(/^Stack \S+, account \d+, region us-east-1\nSwept /);
});

it.each([
  [['sweep'], '--since'],
  [['sweep', '--since', 'yesterday'], 'whole number with a unit'],
  [['sweep', '--since', '1h', '--until', '2h'], 'BAD_ARGUMENT'],
  [['sweep', '--since', '1h', '--until', '1h'], 'BAD_ARGUMENT'],
])('%j is refused', async (argv, says) => {
  const run = await mailroom(...argv);
  expect(run.code).toBe(2);
  expect(unwrapped(run.err)).toContain(says);
});
