import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
} from '@aws-sdk/client-sqs';
import { expect, inject } from 'vitest';
import { type Consumer, QUEUE_OUTPUTS, required } from '../../../demo/readings.ts';
import { sqsClient } from '../../support/aws.ts';
import { eventually } from './eventually.ts';

const outputs = inject('outputs');
const sqs = sqsClient(inject('endpoint'));

/** How long a look at a dead-letter queue may hide what it shows, seconds. */
const LOOK_HIDES_S = 2;

/** The most messages of one receive or send (SQS quotas). */
const BATCH_MAX = 10;

function queueUrl(consumer: Consumer, kind: 'QueueUrl' | 'DlqUrl'): string {
  return required(outputs, `${QUEUE_OUTPUTS[consumer]}${kind}`);
}

/** Sends up to ten messages to a consumer's queue in one call. @returns their SQS message ids, in the same order */
export async function send(consumer: Consumer, bodies: readonly string[]): Promise<string[]> {
  const { Successful = [] } = await sqs.send(
    new SendMessageBatchCommand({
      QueueUrl: queueUrl(consumer, 'QueueUrl'),
      Entries: bodies.map((MessageBody, i) => ({ Id: String(i), MessageBody })),
    }),
  );
  return bodies.map((_, i) => {
    const sent = Successful.find(({ Id }) => Id === String(i));
    if (sent?.MessageId === undefined) throw new Error(`Message ${i} was not taken by the queue`);
    return sent.MessageId;
  });
}

/** How many messages a consumer's queue holds, those in flight and those that wait hidden included. */
export async function waiting(consumer: Consumer): Promise<number> {
  const { Attributes = {} } = await sqs.send(
    new GetQueueAttributesCommand({
      QueueUrl: queueUrl(consumer, 'QueueUrl'),
      AttributeNames: [
        'ApproximateNumberOfMessages',
        'ApproximateNumberOfMessagesNotVisible',
        'ApproximateNumberOfMessagesDelayed',
      ],
    }),
  );
  return Object.values(Attributes).reduce((sum, count) => sum + Number(count), 0);
}

/** The time for which another test's message in the same queue may be retried, milliseconds. */
const OTHERS_MS = 60_000;

/** Waits until a consumer's queue holds no message of any test. */
export async function untilEmpty(consumer: Consumer): Promise<void> {
  await eventually(async () => expect(await waiting(consumer)).toBe(0), OTHERS_MS);
}

/** Receives everything that a consumer's dead-letter queue shows at this moment. */
async function receiveDeadLetters(QueueUrl: string): Promise<Message[]> {
  const found: Message[] = [];
  for (;;) {
    const { Messages = [] } = await sqs.send(
      new ReceiveMessageCommand({
        QueueUrl,
        MaxNumberOfMessages: BATCH_MAX,
        VisibilityTimeout: LOOK_HIDES_S,
      }),
    );
    found.push(...Messages);
    if (Messages.length === 0) return found;
  }
}

/**
 * Waits until SQS has moved a message into a consumer's dead-letter queue, and takes it out there. All others are
 * shown again at once, so that tests which wait at the same time each find their own.
 *
 * @returns its body
 */
export async function takeDeadLetter(consumer: Consumer, messageId: string): Promise<string> {
  const QueueUrl = queueUrl(consumer, 'DlqUrl');
  return eventually(async () => {
    const letters = await receiveDeadLetters(QueueUrl);
    for (const { MessageId, ReceiptHandle } of letters) {
      if (MessageId === messageId) await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
      else await showAgain(QueueUrl, ReceiptHandle);
    }
    const body = letters.find(({ MessageId }) => MessageId === messageId)?.Body;
    expect(body, `message ${messageId} in the dead-letter queue of ${consumer}`).toBeDefined();
    return body ?? '';
  });
}

/** Another test may have taken it in between: then there is nothing to show. */
async function showAgain(QueueUrl: string, ReceiptHandle: string | undefined): Promise<void> {
  await sqs
    .send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout: 0 }))
    .catch(() => {});
}

/**
 * Waits until a message is in a consumer's dead-letter queue, and sends it back to the queue that it came from, as
 * a redrive does: the message gets a new id, and its receives count from 1 again.
 *
 * @returns the new id
 */
export async function redrive(consumer: Consumer, messageId: string): Promise<string> {
  const MessageBody = await takeDeadLetter(consumer, messageId);
  const { MessageId = '' } = await sqs.send(
    new SendMessageCommand({ QueueUrl: queueUrl(consumer, 'QueueUrl'), MessageBody }),
  );
  return MessageId;
}

/** The ids of the messages in a consumer's dead-letter queue. */
export async function deadLetters(consumer: Consumer): Promise<string[]> {
  const QueueUrl = queueUrl(consumer, 'DlqUrl');
  const letters = await receiveDeadLetters(QueueUrl);
  for (const { ReceiptHandle } of letters) await showAgain(QueueUrl, ReceiptHandle);
  return letters.map(({ MessageId = '' }) => MessageId);
}
