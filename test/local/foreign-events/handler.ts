import { lambdaConsumer, leased, PoisonMessage } from '../../../lambdas/runtime/index.ts';
import { Charged, ObjectCreated } from './events.ts';

/** Counts the runs of each event in a row of its own. */
export const handler = lambdaConsumer(({ table }) => [
  leased(ObjectCreated, (event, ctx) => ctx.commit({ writes: [run(event.foreignId)] })),
  leased(Charged, async (event, ctx) => {
    const isHeld = (await table.get({ PK: 'RUNS#hold', SK: 'RUNS' }, { consistent: true })) !== undefined;
    if (isHeld && event.data.amount === 13) throw new PoisonMessage('the amount 13 is refused');
    await ctx.commit({ writes: [run(event.foreignId, event.occurredAt)] });
  }),
]);

function run(foreignId: string, occurredAt = 0) {
  return {
    Update: {
      Key: { PK: `RUNS#${foreignId}`, SK: 'RUNS' },
      UpdateExpression: 'ADD runs :one SET occurredAt = :at',
      ExpressionAttributeValues: { ':one': 1, ':at': occurredAt },
    },
  };
}
