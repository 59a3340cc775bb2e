import { expect, test } from 'vitest';
import { createRelaySweep } from '../../../../lambdas/runtime/relay/relay-sweep.ts';
import { outboxKeyOf } from '../../../../lambdas/runtime/store/event-id.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { relayConfig, rig, runThrough } from '../../../support/runtime-rig.ts';
import { sweeper } from './relay-sweep-rig.ts';

type Options = Parameters<typeof rig>[0];

/** An event that a sweep has published, and the sweep that republishes it. */
async function published(options: Options = {}, config: Partial<typeof relayConfig> = {}) {
  const parts = rig(options);
  const [event] = await parts.outbox.commit({ events: [parts.happened(1)] });
  const eventId = event?.eventId ?? '';
  const { clock } = parts;
  const handler = createRelaySweep({ ...parts, config: { ...relayConfig, ...config } });
  const republish = (id = eventId) => runThrough(clock, handler({ republish: id }, lambdaContext({ clock })));
  const row = () => parts.memory.item(outboxKeyOf(eventId));
  await clock.advance(150_000);
  return { ...parts, eventId, republish, row, sweep: () => sweeper(parts).pass() };
}

test('a published event is published again as it is, and its row does not change', async () => {
  const { sweep, row, republish, publishedIds, bus, eventId } = await published();
  await sweep();
  const before = row();
  expect(before).toMatchObject({ status: 'PUBLISHED' });
  expect(await republish()).toEqual({ republish: eventId });
  expect(publishedIds()).toEqual([eventId, eventId]);
  const [first, second] = bus.published();
  expect(second).toMatchObject({
    source: first?.source,
    detailType: first?.detailType,
    detail: first?.detail,
  });
  expect(row()).toEqual(before);
});

test('a pending event, an unknown one and one of an undeclared source are refused', async () => {
  const refusal = (message: RegExp) =>
    expect.objectContaining({ code: 'NOT_PUBLISHED', message: expect.stringMatching(message) });
  const pending = await published();
  await expect(pending.republish()).rejects.toEqual(refusal(/is PENDING/));
  await expect(pending.republish('thing-1')).rejects.toEqual(refusal(/has no row/));
  expect(pending.publishedIds()).toEqual([]);

  const undeclared = await published({}, { sources: ['orders'] });
  await undeclared.sweep();
  await expect(undeclared.republish()).rejects.toEqual(refusal(/is PUBLISHED, with source things/));
  expect(undeclared.publishedIds()).toHaveLength(1);
});

test.each<[string, Options, object]>([
  [
    'an entry',
    { bus: { failEntry: () => ({ code: 'ThrottlingException', message: 'slow down' }) } },
    { code: 'ThrottlingException', message: 'slow down' },
  ],
  [
    'the call',
    { bus: { failCall: () => ({ error: new Error('connect ETIMEDOUT') }) } },
    { message: 'connect ETIMEDOUT' },
  ],
])('a bus that refuses %s is reported', async (_what, options, refusal) => {
  let refuses = false;
  const bus = Object.fromEntries(
    Object.entries(options?.bus ?? {}).map(([name, fail]) => [
      name,
      (...given: []) => (refuses ? (fail as () => unknown)(...given) : undefined),
    ]),
  );
  const { sweep, republish, eventId } = await published({ bus });
  await sweep();
  refuses = true;
  expect(await republish()).toMatchObject({ republish: eventId, refusal });
});
