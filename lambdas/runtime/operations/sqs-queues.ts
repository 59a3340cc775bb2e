import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { errorCode, errorMessage } from '../base/errors.ts';
import type { QueueMessage, Queues } from './queues.ts';

/** The maximum number of messages in one receive (SQS API reference, ReceiveMessage). */
const RECEIVE_MAX = 10;

/** A short poll queries only some of SQS's servers: the queue counts as read after this many consecutive polls without new messages. */
const EMPTY_RECEIVES = 3;

const HIDE_S = 30;

/**
 * The queues port on SQS.
 *
 * @example
 * ```ts
 * const { waiting } = await sqsQueues(new SQSClient(clientSettings)).depth(url);
 * ```
 */
export function sqsQueues(client: SQSClient): Queues {
  async function receive(
    url: string,
    options: { readonly limit: number; readonly hideS?: number },
  ): Promise<QueueMessage[]> {
    const found = new Map<string, QueueMessage>();
    for (let empty = 0; empty < EMPTY_RECEIVES && found.size < options.limit; ) {
      const { Messages = [] } = await client.send(
        new ReceiveMessageCommand({
          QueueUrl: url,
          MaxNumberOfMessages: Math.min(RECEIVE_MAX, options.limit - found.size),
          VisibilityTimeout: options.hideS ?? HIDE_S,
          MessageAttributeNames: ['All'],
          MessageSystemAttributeNames: ['SentTimestamp', 'ApproximateReceiveCount'],
        }),
      );
      const before = found.size;
      for (const message of Messages) found.set(message.MessageId ?? '', queueMessageOf(message));
      empty = found.size === before ? empty + 1 : 0;
    }
    return [...found.values()].sort((a, b) => a.sentAt - b.sentAt);
  }

  return {
    receive,
    depth: async (url) => {
      const { Attributes = {} } = await client.send(
        new GetQueueAttributesCommand({
          QueueUrl: url,
          AttributeNames: [
            'QueueArn',
            'MessageRetentionPeriod',
            'ApproximateNumberOfMessages',
            'ApproximateNumberOfMessagesNotVisible',
            'ApproximateNumberOfMessagesDelayed',
          ],
        }),
      );
      const number = (name: keyof typeof Attributes) => Number(Attributes[name] ?? 0);
      return {
        arn: Attributes.QueueArn ?? '',
        waiting: number('ApproximateNumberOfMessages'),
        inFlight:
          number('ApproximateNumberOfMessagesNotVisible') + number('ApproximateNumberOfMessagesDelayed'),
        retentionMs: number('MessageRetentionPeriod') * 1_000,
      };
    },
    show: async (url, { receiptHandle }) => {
      try {
        await client.send(
          new ChangeMessageVisibilityCommand({
            QueueUrl: url,
            ReceiptHandle: receiptHandle,
            VisibilityTimeout: 0,
          }),
        );
      } catch (error) {
        if (errorCode(error) !== 'MessageNotInflight' && !isOldReceipt(error)) throw error;
      }
    },
    send: async (url, body) => {
      const { MessageId = '' } = await client.send(
        new SendMessageCommand({ QueueUrl: url, MessageBody: body }),
      );
      return MessageId;
    },
    remove: async (url, { receiptHandle }) => {
      try {
        await client.send(new DeleteMessageCommand({ QueueUrl: url, ReceiptHandle: receiptHandle }));
      } catch (error) {
        if (!isOldReceipt(error)) throw error;
      }
    },
  };
}

/**
 * Returns true if a dead letter was shown again and then received by another reader, or is deleted. SQS reports this with one of
 * two errors, or reports success and keeps the message (AWS re:Post, "How do I troubleshoot ReceiptHandleIsInvalid and
 * InvalidParameterValue errors").
 */
function isOldReceipt(error: unknown): boolean {
  return (
    /ReceiptHandleIsInvalid/.test(errorCode(error)) ||
    (/InvalidParameterValue/.test(errorCode(error)) && /receipt ?handle/i.test(errorMessage(error)))
  );
}

function queueMessageOf(message: Message): QueueMessage {
  const attributes = Object.entries(message.MessageAttributes ?? {}).map(
    ([name, value]) => [name, value.StringValue ?? ''] as const,
  );
  return {
    messageId: message.MessageId ?? '',
    receiptHandle: message.ReceiptHandle ?? '',
    body: message.Body ?? '',
    sentAt: Number(message.Attributes?.SentTimestamp ?? 0),
    receives: Number(message.Attributes?.ApproximateReceiveCount ?? 0) || undefined,
    attributes: Object.fromEntries(attributes),
  };
}
