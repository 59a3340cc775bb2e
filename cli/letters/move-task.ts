import { type SQSClient, StartMessageMoveTaskCommand } from '@aws-sdk/client-sqs';
import { errorCode } from '../../lambdas/runtime/errors.ts';

/** The most messages a second of a move task (SQS API reference, StartMessageMoveTask). */
const RATE_MAX = 500;

/** What an engine that has no move tasks says. */
const UNKNOWN_ACTION = /InvalidAction|UnsupportedOperation|UnknownOperation|NotImplemented/;

/**
 * Moves everything in a dead-letter queue back to its source, inside SQS.
 *
 * @returns `false` where the engine cannot: MiniStack has no move tasks, and those of LocalStack keep the message id, by which the
 * inbox recognises what it rejected
 */
export async function startMove(
  { sqs, isLocal }: { readonly sqs: SQSClient; readonly isLocal: boolean },
  { from, to, ratePerS }: { readonly from: string; readonly to: string; readonly ratePerS: number },
): Promise<boolean> {
  if (isLocal) return false;
  try {
    await sqs.send(
      new StartMessageMoveTaskCommand({
        SourceArn: from,
        // Said although it is the default: letters that were sent there by hand know of no source.
        DestinationArn: to,
        MaxNumberOfMessagesPerSecond: Math.min(RATE_MAX, ratePerS),
      }),
    );
    return true;
  } catch (error) {
    if (UNKNOWN_ACTION.test(errorCode(error))) return false;
    throw error;
  }
}
