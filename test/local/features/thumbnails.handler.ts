import { lambdaConsumer, leased } from '../../../lambdas/runtime/index.ts';
import { ObjectCreated } from './external-events.ts';
import { runOf } from './run.ts';

/** Counts the runs of each object's event. */
export const handler = lambdaConsumer([
  leased(ObjectCreated, (event, ctx) => ctx.commit({ writes: [runOf(event)] })),
]);
