import { bridgeAddress } from '../base/bridge-address.ts';
import { requireGiven } from '../base/given-names.ts';
import { type BatchAnswer, batchResults, bodyAndAttributes, fifoFields, sendBatchOf } from './aws-answers.ts';
import type { BridgeTarget } from './bridge-target.ts';

/** The part of the client `SNS` of `@aws-sdk/client-sns` that {@link snsTarget} uses. */
export interface SnsPublisher {
  publishBatch(input: {
    TopicArn: string;
    PublishBatchRequestEntries: {
      Id: string;
      Message: string;
      MessageAttributes: Record<string, { DataType: string; StringValue: string }>;
      MessageGroupId?: string;
      MessageDeduplicationId?: string;
    }[];
  }): Promise<BatchAnswer>;
}

/** SNS quotas: 10 messages and 256 KiB in a batch, 256 KiB in a message. */
const LIMITS = { entries: 10, bytes: 256 * 1024 };

/**
 * Forwards to an SNS topic. In a FIFO topic, the group is the aggregate id (its SHA-256 if SNS does not accept it) and the deduplication id
 * is `<bridge>/<event id>`. The headers are message attributes, on which subscriptions can filter.
 *
 * @param target.client - `new SNS(clientSettings)`
 * @param target.topicArn - the ARN of the topic; a FIFO topic's ends with `.fifo` @default the environment, as `forwardsTo` sets it
 */
export function snsTarget(target: {
  readonly client: SnsPublisher;
  readonly topicArn?: string | undefined;
}): BridgeTarget {
  requireGiven('snsTarget', target, 'client');
  const arn = () => bridgeAddress(target.topicArn, 'topicArn');
  return {
    name: () => `topic ${arn().split(':').at(-1)}`,
    limits: LIMITS,
    cloudEventsPrefix: 'ce-',
    send: async (entries) => {
      const TopicArn = arn();
      return sendBatchOf(
        entries,
        (entry) => {
          const { body: Message, MessageAttributes } = bodyAndAttributes(entry, LIMITS.bytes);
          return { Message, MessageAttributes, ...fifoFields(TopicArn, entry) };
        },
        async (messages) => {
          const PublishBatchRequestEntries = messages.map((message, i) => ({ Id: String(i), ...message }));
          return batchResults(await target.client.publishBatch({ TopicArn, PublishBatchRequestEntries }));
        },
      );
    },
  };
}
