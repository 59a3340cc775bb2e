import { randomUUID } from 'node:crypto';
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  DeleteQueueCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
} from '@aws-sdk/client-sqs';
import { inject } from 'vitest';
import { sqsQueue } from '../../lambdas/runtime/consume/sqs-queue.ts';
import { isMiniStack, sqsClient } from '../support/aws.ts';
import { type Differences, differing, type Subject } from './cases.ts';
import { describeQueue, type QueueSubject } from './queue-contract.ts';

/** Where MiniStack 1.5.33 does otherwise than SQS is documented to do. */
const MINISTACK: Differences = differing('it takes any number of seconds', [
  'refused: a visibility below 0 or above 12 hours',
]);

const endpoint = inject('endpoint');

async function make(): Promise<Subject<QueueSubject>> {
  const client = sqsClient(endpoint);
  const { QueueUrl = '' } = await client.send(
    new CreateQueueCommand({ QueueName: `contract-${randomUUID()}` }),
  );

  /** Waits by SQS's own long polling. */
  async function receive(withinMs = 0) {
    const { Messages = [] } = await client.send(
      new ReceiveMessageCommand({
        QueueUrl,
        WaitTimeSeconds: Math.ceil(withinMs / 1000),
        MessageSystemAttributeNames: ['ApproximateReceiveCount'],
      }),
    );
    const [message] = Messages;
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
