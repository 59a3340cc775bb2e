import { forwardAddress } from '../base/forward-address.ts';
import { attributes, awsAnswers, type BatchAnswer, batchResults, fifoFields } from './aws-answers.ts';
import type { ForwardTarget } from './forward-target.ts';

/** The part of the client `SQS` of `@aws-sdk/client-sqs` that {@link sqsTarget} uses. */
export interface SqsSender {
  sendMessageBatch(input: {
    QueueUrl: string;
    Entries: {
      Id: string;
      MessageBody: string;
      MessageAttributes: Record<string, { DataType: string; StringValue: string }>;
      MessageGroupId?: string;
      MessageDeduplicationId?: string;
    }[];
  }): Promise<BatchAnswer>;
}

/** SQS quotas: 10 messages and 1 MiB in a batch, 1 MiB in a message. */
const LIMITS = { entries: 10, bytes: 1024 * 1024 };

/**
 * Forwards to an SQS queue. In a FIFO queue, the group is the aggregate id (its SHA-256 if SQS does not accept it) and the deduplication id
 * is the event id.
 *
 * @param target.client - `new SQS(clientSettings)`
 * @param target.queueUrl - the URL of the queue; a FIFO queue's ends with `.fifo` @default the environment, as `forwardsTo` sets it
 */
export function sqsTarget(target: {
  readonly client: SqsSender;
  readonly queueUrl?: string | undefined;
}): ForwardTarget {
  const url = () => forwardAddress(target.queueUrl, 'queueUrl');
  return {
    name: () => `queue ${url().split('/').at(-1)}`,
    limits: LIMITS,
    cloudEventsPrefix: 'ce-',
    send: (entries) =>
      awsAnswers(entries, async () => {
        const Entries = entries.map((entry, i) => ({
          Id: String(i),
          MessageBody: entry.body,
          MessageAttributes: attributes(entry),
          ...fifoFields(url(), entry),
        }));
        return batchResults(await target.client.sendMessageBatch({ QueueUrl: url(), Entries }));
      }),
  };
}
