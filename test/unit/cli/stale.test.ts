import { expect, test } from 'vitest';
import { CLOCK_SKEW_MS } from '../../../lambdas/runtime/base/clock.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { captured, countedBytes, tooWide } from './support/captured-output.ts';
import { mailroomInMemory } from './support/mailroom-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';

const EXPIRES_IN_MS = 10 * MINUTE_MS;

const CODE = { fixed: false };

/** A Mailroom whose handler takes a message for ten minutes: it fails, and charges before it does if `n` is 2. */
async function withOldMessages(n: number) {
  CODE.fixed = false;
  const handler = leased(
    ThingHappened,
    async ({ data }, ctx) => {
      if (data.n === 2) await ctx.once('charge', async () => 'charged');
      if (!CODE.fixed) throw new Error('The provider is down');
    },
    { expiresInMs: EXPIRES_IN_MS },
  );
  const mailroom = mailroomInMemory([handler], { random: countedBytes() });
  const events = [ThingHappened.create({ aggregateId: `thing-${n}`, data: { n } })];
  const [event] = await mailroom.outbox.commit({ events });
  await mailroom.publish();
  return { mailroom, id: event?.eventId ?? '' };
}

test('the outputs about a stale message are the reviewed ones', async () => {
  const { mailroom, id } = await withOldMessages(1);
  await mailroom.clock.advance(EXPIRES_IN_MS + CLOCK_SKEW_MS + 1);
  await mailroom.deliver();
  const outputs = {
    'status-stale': ['status'],
    'why-stale': ['why', id],
    'why-stale-story': ['why', id, '--story'],
  };
  for (const [name, argv] of Object.entries(outputs)) {
    const text = await captured(mailroom, argv);
    expect(tooWide(text)).toEqual([]);
    await expect(text).toMatchFileSnapshot(`captures/${name}.txt`);
  }
  const { out } = await runInMemory(mailroom, ['status', '--json']);
  expect(JSON.parse(out).consumers.worker).toMatchObject({ stale: 1, failed: 0 });
  const resolved = await runInMemory(mailroom, ['messages', 'resolve', 'worker', id]);
  expect(resolved.out + resolved.err).toMatch(/was discarded as stale by\s+its consumer/);
});

test('a redrive leaves a dead letter that is stale, and redrives one with an effect', async () => {
  for (const [n, verdict] of [
    [1, 'stale'],
    [2, 'runs'],
  ] as const) {
    const { mailroom, id } = await withOldMessages(n);
    await mailroom.drain();
    await mailroom.clock.advance(EXPIRES_IN_MS + CLOCK_SKEW_MS + 1);
    CODE.fixed = true;
    const { out } = await runInMemory(mailroom, ['dlq', 'redrive', 'consumer:worker', '--json']);
    const plan = JSON.parse(out);
    expect(plan.verdicts).toMatchObject({ [verdict]: 1 });
    const why = JSON.parse((await runInMemory(mailroom, ['why', id, '--json'])).out);
    expect(why.verdict.next).toContain(
      verdict === 'stale' ? 'dlq resend consumer:worker' : 'dlq redrive consumer:worker',
    );
  }
});

test('the words of a plan with a stale dead letter are the reviewed ones', async () => {
  const { mailroom } = await withOldMessages(1);
  await mailroom.drain();
  await mailroom.clock.advance(EXPIRES_IN_MS + CLOCK_SKEW_MS + 1);
  const text = await captured(mailroom, ['dlq', 'redrive', 'consumer:worker']);
  expect(tooWide(text)).toEqual([]);
  await expect(text).toMatchFileSnapshot('captures/dlq-redrive-stale.txt');
});
