import { ChangeMessageVisibilityCommand, SQSClient } from '@aws-sdk/client-sqs';
import { clientSettings } from '../../base/client-settings.ts';
import { requireGiven } from '../../base/given-names.ts';
import type { Queue } from './queue.ts';

/** Dependencies of {@link sqsQueue}. */
export interface SqsQueueDeps {
  /** Your client. */
  readonly client: SQSClient;
  /** The URL of the consumer's queue. */
  readonly queueUrl: string;
}

/**
 * The queue port on SQS.
 *
 * @throws (from `changeVisibility`) the error from SQS, e.g. `MessageNotInflight` if the message is visible again
 *
 * @example
 * ```ts
 * const queue = sqsQueue({ client: new SQSClient(), queueUrl: config.queueUrl });
 * ```
 */
export function sqsQueue(deps: SqsQueueDeps): Queue {
  requireGiven('sqsQueue', deps, 'client', 'queueUrl');
  const { client, queueUrl } = deps;
  return {
    changeVisibility: async (receiptHandle, seconds) => {
      await client.send(
        new ChangeMessageVisibilityCommand({
          QueueUrl: queueUrl,
          ReceiptHandle: receiptHandle,
          VisibilityTimeout: seconds,
        }),
      );
    },
  };
}

/** {@link sqsQueue} with its own client. The client is made here so that the bundle of a producer does not import SQS. */
export function ownSqsQueue(queueUrl: string): Queue {
  return sqsQueue({ client: new SQSClient(clientSettings), queueUrl });
}
