import { InvokeCommand } from '@aws-sdk/client-lambda';
import { run } from '../cli/changes/change.ts';
import { discard } from '../cli/changes/discard/discard.ts';
import { type Deployment, openDeployment } from '../cli/deployment/deployment.ts';
import { isMailroomError } from '../lambdas/runtime/base/errors.ts';
import { quietIo } from './page.ts';

/**
 * Rejects messages of payments as an operator does: `mailroom dlq discard consumer:payments <event id> --reject`. A message whose dead letter
 * cannot be received yet is left for the next call.
 */
export async function paymentRejection(endpoint: string): Promise<(eventId: string) => Promise<void>> {
  const deployment = await opened(endpoint);
  return async (eventId) => {
    try {
      await run(discard, deployment, {
        source: 'consumer:payments',
        ids: [eventId],
        reject: true,
        apply: true,
        reason: 'the bank does not know the customer',
      });
    } catch (error) {
      if (!isMailroomError(error, 'NO_SUCH_DEAD_LETTER')) throw error;
    }
  };
}

/**
 * Starts the sweep at once. Its schedule first runs a minute after the deployment, and until then the order that is not paid in time would not
 * expire.
 */
export async function startSweep(endpoint: string): Promise<void> {
  const { clients, directory } = await opened(endpoint);
  await clients.lambda.send(
    new InvokeCommand({ FunctionName: directory.mailroom.sweepFunction, InvocationType: 'Event' }),
  );
}

function opened(endpoint: string): Promise<Deployment> {
  return openDeployment(quietIo(new AbortController().signal), { endpoint, json: true });
}
