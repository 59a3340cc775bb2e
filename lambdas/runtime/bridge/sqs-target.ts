import { bridgeAddress } from '../base/bridge-address.ts';
import { requireGiven } from '../base/given-names.ts';
import { type BatchAnswer, batchResults, bodyAndAttributes, fifoFields, sendBatchOf } from './aws-answers.ts';
import type { BridgeTarget } from './bridge-target.ts';

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
 * is `<bridge>/<event id>`.
 *
 * @param target.client - `new SQS(clientSettings)`
 * @param target.queueUrl - the URL of the queue; a FIFO queue's ends with `.fifo` @default the environment, as `forwardsTo` sets it
 */
export function sqsTarget(target: {
  readonly client: SqsSender;
  readonly queueUrl?: string | undefined;
}): BridgeTarget {
  requireGiven('sqsTarget', target, 'client');
  const url = () => bridgeAddress(target.queueUrl, 'queueUrl');
  return {
    name: () => `queue ${url().split('/').at(-1)}`,
    limits: LIMITS,
    cloudEventsPrefix: 'ce-',
    send: async (entries) => {
      const QueueUrl = url();
      return sendBatchOf(
        entries,
        (entry) => {
          const { body: MessageBody, MessageAttributes } = bodyAndAttributes(entry, LIMITS.bytes);
          return { MessageBody, MessageAttributes, ...fifoFields(QueueUrl, entry) };
        },
        async (messages) => {
          const Entries = messages.map((message, i) => ({ Id: String(i), ...message }));
          return batchResults(await target.client.sendMessageBatch({ QueueUrl, Entries }));
        },
      );
    },
  };
}
