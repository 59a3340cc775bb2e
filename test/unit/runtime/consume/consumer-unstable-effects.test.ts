import { describe, expect, test } from 'vitest';
import { type Handler, type LeasedContext, leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { AlreadyProcessed, PoisonMessage } from '../../../../lambdas/runtime/errors.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { consumer, domainRow, inboxRow, leaveEffect, type Parts, send } from './consumer-rig.ts';

const handles = (handle: (ctx: LeasedContext) => Promise<unknown>): Handler =>
  leased(ThingHappened, async (_event, ctx) => void (await handle(ctx)));

type Sent = ReturnType<typeof send>;

/** Runs one message to its end. */
async function processed(handler: Handler, prepare?: (parts: Parts, event: Sent) => Promise<unknown>) {
  const parts = rig();
  const event = send(parts);
  await prepare?.(parts, event);
  await consumer(parts, [handler]).drain();
  expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  const { telemetry } = parts;
  const errors = telemetry
    .lines()
    .map(({ extra }) => extra as { readonly eventId: string; readonly error: Error } | undefined)
    .filter((extra) => extra?.error?.message.includes('never requested'));
  return { parts, event, counted: telemetry.counted('UnstableEffects'), errors };
}

const charge = async () => 'charged';

const failsFirst = (ctx: LeasedContext): void => {
  if (ctx.attempt === 1) throw new Error('the first attempt fails');
};

describe('an effect under another name in each attempt', () => {
  test.each([
    ['returns', async () => {}],
    ['commits', async (ctx: LeasedContext) => ctx.commit({ writes: [domainRow] })],
  ])('is counted and logged with its names when the handler %s', async (_how, end) => {
    const { counted, errors, event } = await processed(
      handles(async (ctx) => {
        await ctx.once(`charge-${ctx.attempt}`, charge);
        failsFirst(ctx);
        await end(ctx);
      }),
    );
    expect(counted).toBe(1);
    expect(errors).toMatchObject([{ eventId: event.eventId, error: { code: 'UNSTABLE_EFFECTS' } }]);
    expect(errors[0]?.error.message).toContain('requested "charge-2" and never requested "charge-1"');
  });

  test('is counted for each name that an earlier attempt used', async () => {
    const { counted, errors } = await processed(
      handles(async (ctx) => {
        for (const item of ['a', 'b']) await ctx.once(`charge-${item}-${ctx.attempt}`, charge);
        failsFirst(ctx);
      }),
    );
    expect(counted).toBe(2);
    expect(errors).toHaveLength(1);
  });

  test('is noticed after a crash in the middle of it, too: it may have happened', async () => {
    const { counted } = await processed(
      handles((ctx) => ctx.once('charge-2', charge)),
      (parts, event) => leaveEffect(parts, event, { endsBy: 0 }, 'charge-1'),
    );
    expect(counted).toBe(1);
  });
});

test('an effect that an earlier attempt completed, and that this one no longer wants, is reported', async () => {
  const { counted, errors } = await processed(
    handles(async (ctx) => {
      if (ctx.attempt === 1) await ctx.once('charge', charge);
      failsFirst(ctx);
    }),
  );
  expect(counted).toBe(1);
  expect(errors[0]?.error.message).toContain('requested no effect and never requested "charge"');
});

test('the effects of a rejected message are reported when its redrive no longer requests them', async () => {
  const parts = rig();
  const event = send(parts);
  const rejects = handles(async (ctx) => {
    await ctx.once('charge', charge);
    throw new PoisonMessage('no such customer');
  });
  await consumer(parts, [rejects]).drain();
  parts.queue.redrive();
  await consumer(parts, [handles(async () => {})]).drain();
  expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  expect(parts.telemetry.counted('UnstableEffects')).toBe(1);
});

describe('nothing is reported', () => {
  test.each<[string, (ctx: LeasedContext) => Promise<unknown>]>([
    [
      'of an effect that keeps its name',
      async (ctx) => {
        await ctx.once('charge', charge);
        failsFirst(ctx);
      },
    ],
    [
      'of an effect that failed and is not wanted any more',
      (ctx) => (ctx.attempt === 1 ? ctx.once('charge', () => Promise.reject(new Error('no'))) : charge()),
    ],
    [
      'where the handler finds that the work is done already',
      async (ctx) => {
        if (ctx.attempt > 1) throw new AlreadyProcessed('charged');
        await ctx.once('charge', charge);
        failsFirst(ctx);
      },
    ],
  ])('%s', async (_what, handle) => {
    const { counted, errors } = await processed(handles(handle));
    expect(errors).toEqual([]);
    expect(counted).toBe(0);
  });

  test('in a first attempt', async () => {
    const { counted } = await processed(handles((ctx) => ctx.once('charge', charge)));
    expect(counted).toBe(0);
  });
});
