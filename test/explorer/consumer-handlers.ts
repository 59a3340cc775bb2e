import { isMailroomError, RetryLater } from '../../lambdas/runtime/base/errors.ts';
import { type LeasedContext, leased, transactional } from '../../lambdas/runtime/consume/handler.ts';
import type { Commit } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import { ThingHappened } from '../support/runtime-rig.ts';

/** The row that every commit here adds one to. */
export const COUNTER = { PK: 'COUNTER#1', SK: 'COUNTER' };

/** What every handler here does: one to the counter, and an event that says so. */
export const ADD_ONE: Commit = {
  writes: [
    {
      Update: {
        Key: COUNTER,
        UpdateExpression: 'ADD n :one',
        ExpressionAttributeValues: { ':one': 1 },
      },
    },
  ],
  events: [ThingHappened.create({ aggregateId: 'thing-2', data: { n: 2 } })],
};

export const CHARGE = 'charge';

export const chargeAndCommit = leased(ThingHappened, async (_event, ctx) => {
  await charge(ctx);
  await ctx.commit(ADD_ONE);
});

/** An effect that must happen, and whose result must be the same for every caller. */
export async function charge(ctx: LeasedContext): Promise<void> {
  const result = await ctx.once(CHARGE, async () => ({ charged: true }));
  if (result?.charged !== true) throw new Error('The result of the effect was lost');
}

/** An effect that its handler tries again at once when it failed; the first try in a handler always does. */
export const chargeAgain = leased(ThingHappened, async (_event, ctx) => {
  try {
    await ctx.once(CHARGE, async () => Promise.reject(new Error('The provider is busy')));
  } catch (error) {
    if (isMailroomError(error, 'FENCE_LOST') || isMailroomError(error, 'EFFECT_IN_PROGRESS')) throw error;
    await charge(ctx);
  }
});

export const commitOnly = leased(ThingHappened, async (_event, ctx) => {
  await ctx.commit(ADD_ONE);
});

/** What it makes of a commit without an answer must not decide about the message. */
export const commitAndSwallow = leased(ThingHappened, async (_event, ctx) => {
  await ctx.commit(ADD_ONE).catch((error: Error) => {
    if (error.name !== 'TimeoutError') throw error;
  });
});

export const returnOnly = leased(ThingHappened, async () => ({ done: true }));

export const chargeOnly = leased(ThingHappened, async (_event, ctx) => charge(ctx));

export const write = transactional(ThingHappened, async () => ADD_ONE);

/** Its first attempt asks for the next one at once: a visibility change that, late, shows the message while another worker has it. */
export const retriedAtOnce = leased(ThingHappened, async (_event, ctx) => {
  if (ctx.attempt === 1) throw new RetryLater(0);
  await ctx.commit(ADD_ONE);
});

/** Nothing awaits its effect. */
export const chargeUnawaited = leased(ThingHappened, async (_event, ctx) => {
  void ctx.once(CHARGE, async () => ({ charged: true }));
});

/** Nothing awaits its commit. */
export const commitUnawaited = leased(ThingHappened, async (_event, ctx) => {
  void ctx.commit(ADD_ONE);
});

/** Its first attempt commits beside an effect that it does not await; later ones await it. */
export const commitBesideCharge = leased(ThingHappened, async (_event, ctx) => {
  const charged = charge(ctx);
  charged.catch(() => {}); // this chain only: a refused commit ends the attempt before it is awaited
  if (ctx.attempt > 1) await charged;
  await ctx.commit(ADD_ONE);
});
