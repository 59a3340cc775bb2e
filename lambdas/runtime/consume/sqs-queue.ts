import { ChangeMessageVisibilityCommand, type SQSClient } from '@aws-sdk/client-sqs';
import type { Queue } from './queue.ts';

/** What {@link sqsQueue} is made of. */
export interface SqsQueueDeps {
  /** The caller's client. */
  readonly client: SQSClient;
  /** The queue that the consumer's messages come from. */
  readonly queueUrl: string;
}

/**
 * The queue port on SQS.
 *
 * @throws (from `changeVisibility`) SQS's own error, e.g. `MessageNotInflight` when the message is visible again
 *
 * @example
 * ```ts
 * const queue = sqsQueue({ client: new SQSClient(), queueUrl: config.queueUrl });
 * ```
 */
export function sqsQueue({ client, queueUrl }: SqsQueueDeps): Queue {
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
