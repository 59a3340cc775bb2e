import { randomUUID } from 'node:crypto';
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  DeleteQueueCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageCommand,
} from '@aws-sdk/client-sqs';
import { inject } from 'vitest';
import { sqsQueue } from '../../lambdas/runtime/sources/sqs/sqs-queue.ts';
import { isMiniStack, sqsClient } from '../support/aws.ts';
import { type Differences, differing, type Subject } from './cases.ts';
import { describeQueue, type QueueSubject } from './queue-contract.ts';

/** Where MiniStack 1.5.33 does otherwise than SQS is documented to do. */
const MINISTACK: Differences = differing('it takes any number of seconds', [
  'refused: a visibility below 0 or above 12 hours',
]);

/** The longest wait of one receive (SQS quotas). */
const WAIT_MAX_S = 20;

const endpoint = inject('endpoint');

async function make(): Promise<Subject<QueueSubject>> {
  const client = sqsClient(endpoint);
  const { QueueUrl = '' } = await client.send(
    new CreateQueueCommand({
      QueueName: `contract-${randomUUID()}`,
      Attributes: { VisibilityTimeout: '600' },
    }),
  );

  /** Waits by SQS's own long polling, as often as it takes. */
  async function receive(withinMs = 0) {
    const until = Date.now() + withinMs;
    let message: Message | undefined;
    do {
      const waitS = Math.max(0, Math.ceil((until - Date.now()) / 1_000));
      const { Messages = [] } = await client.send(
        new ReceiveMessageCommand({
          QueueUrl,
          WaitTimeSeconds: Math.min(waitS, WAIT_MAX_S),
          MessageSystemAttributeNames: ['ApproximateReceiveCount'],
        }),
      );
      message = Messages[0];
    } while (message === undefined && Date.now() < until);
    if (!message) return undefined;
    const { ReceiptHandle = '', Body = '', Attributes } = message;
    return {
      receiptHandle: ReceiptHandle,
      body: Body,
      receiveCount: Number(Attributes?.ApproximateReceiveCount),
    };
  }

  return {
    subject: {
      queue: sqsQueue({ client, queueUrl: QueueUrl }),
      send: async (body: string) => {
        await client.send(new SendMessageCommand({ QueueUrl, MessageBody: body }));
      },
      receive,
      now: () => Date.now(),
      delete: async (message) => {
        await client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: message.receiptHandle }));
      },
    },
    remove: async () => {
      await client.send(new DeleteQueueCommand({ QueueUrl }));
    },
  };
}

describeQueue('the queue on SQS', make, (await isMiniStack(endpoint)) ? MINISTACK : {});
