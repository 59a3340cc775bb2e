import { SFN } from '@aws-sdk/client-sfn';
import { clientSettings, lambdaConsumer, leased, startExecution } from '../../../lambdas/runtime/index.ts';
import { PackingRequested } from './packing.ts';

const sfn = new SFN(clientSettings);
const stateMachineArn = process.env.STATE_MACHINE_ARN ?? '';

/** Starts an execution, whose input changes with each attempt, as after a deployment. */
export const handler = lambdaConsumer([
  leased(PackingRequested, async ({ eventId, correlationId, data: { parcel, crash } }, ctx) => {
    const input = { parcel, eventId, correlationId, attempt: ctx.attempt };
    const dying: Pick<SFN, 'startExecution'> = {
      startExecution: async (request: Parameters<SFN['startExecution']>[0]) => {
        await sfn.startExecution(request);
        process.exit(1);
      },
    };
    const client = crash && ctx.attempt === 1 ? dying : sfn;
    await startExecution(ctx, { client, stateMachineArn, input });
  }),
]);
