import { describe, expect, test, vi } from 'vitest';
import { type Handler, type LeasedContext, leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { AlreadyProcessed } from '../../../../lambdas/runtime/errors.ts';
import { effectKey } from '../../../../lambdas/runtime/store/rows.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { CONSUMER, consumer, domainRow, inboxRow, type Parts, send } from './consumer-rig.ts';

const handles = (handle: (ctx: LeasedContext) => Promise<unknown>): Handler =>
  leased(ThingHappened, async (_event, ctx) => void (await handle(ctx)));

/** Runs one message to its end. */
async function processed(handler: Handler, prepare?: (parts: Parts, eventId: string) => Promise<unknown>) {
  const parts = rig();
  const event = send(parts);
  await prepare?.(parts, event.eventId);
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

  test('is noticed after a crash in the middle of it, too: it may have happened', async () => {
    const { counted } = await processed(
      handles((ctx) => ctx.once('charge-2', charge)),
      async (parts, eventId) => {
        const left = { status: 'IN_PROGRESS', fence: 'dead', run: 1, endsBy: 0, startedAt: 0, schema: 1 };
        await parts.memory.write({ Put: { Item: { ...effectKey(CONSUMER, eventId, 'charge-1'), ...left } } });
        await consumer(parts, [handles(() => Promise.reject(new Error('down')))]).deliver();
      },
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

test('the effects of earlier attempts are read consistently: a stale read shows one that was released as running', async () => {
  const parts = rig();
  send(parts);
  const query = vi.fn(parts.memory.query);
  const handler = handles(async (ctx) => failsFirst(ctx));
  await consumer(parts, [handler], { ...parts.memory, query }).drain();
  expect(query).toHaveBeenCalledWith(expect.objectContaining({ skPrefix: 'EFFECT#', consistent: true }));
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

  test('in a first attempt, which does not even look', async () => {
    const parts = rig();
    send(parts);
    const query = vi.fn(parts.memory.query);
    const table = { ...parts.memory, query };
    await consumer(parts, [handles((ctx) => ctx.once('charge', charge))], table).deliver();
    expect(parts.telemetry.counted('MessagesProcessed')).toBe(1);
    expect(query).not.toHaveBeenCalled();
  });
});
