import { describe, expect, test } from 'vitest';
import { CLOCK_SKEW_MS } from '../../../../lambdas/runtime/clock.ts';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import type { StoredEffect } from '../../../../lambdas/runtime/store/rows.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { CONSUMER, consumer, inboxRow, leaveEffect, send } from './consumer-rig.ts';

const charges = leased(ThingHappened, async (_event, ctx) => {
  await ctx.once('charge', async () => 'charged');
});

/** Delivers a message once whose earlier attempt left an effect. */
async function delivered(effect: Partial<StoredEffect>, handler = charges) {
  const parts = rig();
  const event = send(parts);
  await leaveEffect(parts, event, effect);
  await consumer(parts, [handler]).deliver();
  const errors = parts.telemetry
    .lines()
    .map(({ extra }) => extra as { readonly eventId: string; readonly error?: Error } | undefined)
    .filter((extra) => extra?.error?.message.includes('may have happened'));
  return { parts, event, errors, counted: parts.telemetry.counted('EffectsInDoubt') };
}

describe('an effect of an earlier attempt that has no result', () => {
  test('is counted and logged with its key when its function has stopped, and is repeated', async () => {
    const { parts, event, errors, counted } = await delivered({ endsBy: 0 });
    expect(counted).toBe(1);
    expect(errors).toMatchObject([{ eventId: event.eventId, error: { code: 'EFFECTS_IN_DOUBT' } }]);
    expect(errors[0]?.error?.message).toContain(`idempotency key ${CONSUMER}:${event.eventId}:charge.`);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('is counted although the handler does not request it', async () => {
    const { counted } = await delivered(
      { endsBy: 0 },
      leased(ThingHappened, async () => {}),
    );
    expect(counted).toBe(1);
  });

  test('is counted for each effect, and logged with all keys', async () => {
    const parts = rig();
    const event = send(parts);
    for (const name of ['charge', 'mail']) await leaveEffect(parts, event, { endsBy: 0 }, name);
    await consumer(parts, [charges]).deliver();
    expect(parts.telemetry.counted('EffectsInDoubt')).toBe(2);
    const messages = parts.telemetry.lines().map(({ extra }) => String((extra as { error?: Error })?.error));
    const keys = ['charge', 'mail'].map((name) => `${CONSUMER}:${event.eventId}:${name}`);
    expect(messages).toContainEqual(expect.stringContaining(`idempotency keys ${keys.join(', ')}.`));
  });

  test.each([
    ['is not counted while clocks may differ', -CLOCK_SKEW_MS, 0],
    ['is counted once clocks cannot differ that much', -CLOCK_SKEW_MS - 1, 1],
  ])('%s', async (_what, endedMs, expected) => {
    const { counted } = await delivered({ endsBy: rig().clock.now() + endedMs });
    expect(counted).toBe(expected);
  });

  test('is not counted while its function may still store the result', async () => {
    const { counted, errors } = await delivered({ endsBy: Number.MAX_SAFE_INTEGER });
    expect({ counted, errors }).toEqual({ counted: 0, errors: [] });
  });
});

test.each<[string, Partial<StoredEffect>]>([
  ['has a result', { status: 'COMPLETED', result: '"charged"' }],
  ['failed and was released', { status: 'RELEASED' }],
])('an effect that %s is not in doubt', async (_what, effect) => {
  expect((await delivered(effect)).counted).toBe(0);
});
