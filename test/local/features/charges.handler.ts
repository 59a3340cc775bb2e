import { lambdaConsumer, leased, PoisonMessage } from '../../../lambdas/runtime/index.ts';
import { Charged } from './external-events.ts';
import { runOf } from './run.ts';

/** Counts the runs of each charge. Refuses the amount 13 while a row holds it. */
export const handler = lambdaConsumer(({ table }) => [
  leased(Charged, async (event, ctx) => {
    const isHeld = (await table.get({ PK: 'RUNS#hold', SK: 'RUNS' }, { consistent: true })) !== undefined;
    if (isHeld && event.data.amount === 13) throw new PoisonMessage('the amount 13 is refused');
    await ctx.commit({ writes: [runOf(event)] });
  }),
]);
