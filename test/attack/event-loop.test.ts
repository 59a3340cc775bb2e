import { describe, expect, it } from 'vitest';
import { leased, transactional } from '../../lambdas/runtime/consume/handler.ts';
import { type Envelope, HOPS_MAX } from '../../lambdas/runtime/events/event.ts';
import { rig, ThingHappened } from '../support/runtime-rig.ts';
import { consumer, inboxRow, send } from '../unit/runtime/consume/consumer-rig.ts';

it('a chain that is meant to continue starts over with a new correlationId', async () => {
  const parts = rig();
  const next = leased(ThingHappened, async ({ data }, ctx) => {
    await ctx.commit({
      events: [ThingHappened.create({ aggregateId: 'thing-1', data, correlationId: 'page-2' })],
    });
  });
  const { deliver } = consumer(parts, [next]);
  send(parts, { hops: HOPS_MAX });
  await deliver();
  const [answer] = parts.rows().map(({ envelope }) => JSON.parse(envelope) as Envelope);
  expect(answer).toMatchObject({ correlationId: 'page-2' });
  expect(answer).not.toHaveProperty('hops');
});

/** A service that answers each event with the next one, which it would see again. */
const echoes = {
  leased: leased(ThingHappened, async ({ data }, ctx) => {
    await ctx.commit({ events: [ThingHappened.create({ aggregateId: 'thing-1', data })] });
  }),
  transactional: transactional(ThingHappened, async ({ data }) => ({
    events: [ThingHappened.create({ aggregateId: 'thing-1', data })],
  })),
};

describe.each(Object.entries(echoes))('a service that answers its own events, %s', (_kind, handler) => {
  const answerTo = async (hops: number | undefined) => {
    const parts = rig();
    const { deliver } = consumer(parts, [handler]);
    const event = send(parts, { hops });
    await deliver();
    const answers = parts.rows().map(({ envelope }) => JSON.parse(envelope) as Envelope);
    return { row: inboxRow(parts, event), answers };
  };

  it.each([
    [undefined, 1],
    [1, 2],
    [HOPS_MAX - 1, HOPS_MAX],
  ])('raises the count of %s to %i', async (hops, next) => {
    const { row, answers } = await answerTo(hops);
    expect(row).toMatchObject({ status: 'PROCESSED' });
    expect(answers).toMatchObject([{ hops: next }]);
  });

  it.each([HOPS_MAX, HOPS_MAX + 1, Number.MAX_SAFE_INTEGER - 1])(
    'a loop stops at %i hops: the message is rejected at once, and nothing is written',
    async (hops) => {
      const { row, answers } = await answerTo(hops);
      expect(row).toMatchObject({ status: 'REJECTED', reason: 'TOO_MANY_HOPS' });
      expect(row?.lastError).toMatch(/a chain may have at most 33 events.*mailroom why/);
      expect(answers).toEqual([]);
    },
  );
});
