import { SQSClient } from '@aws-sdk/client-sqs';
import { expect, test } from 'vitest';
import { sqsQueues } from '../../../../lambdas/runtime/operations/sqs-queues.ts';
import { STUB_CONFIGURATION, stubHandler } from '../../../support/stub-client.ts';

const URL = 'http://127.0.0.1:9/000000000000/letters';

/** A queue whose receives answer with these message ids, one list after the other and the last permanently. */
function queueOf(...receives: (readonly string[])[]) {
  const requestHandler = stubHandler((request) => {
    const ids = receives[Math.min(request, receives.length) - 1] ?? [];
    const Messages = ids.map((id) => ({
      MessageId: id,
      ReceiptHandle: `receipt ${request} of ${id}`,
      Body: '{}',
      Attributes: { SentTimestamp: id.replace(/\D/g, ''), ApproximateReceiveCount: '6' },
    }));
    return { status: 200, body: { Messages } };
  });
  const client = new SQSClient({
    ...STUB_CONFIGURATION,
    requestHandler: requestHandler as never,
    md5: false,
  });
  return { queues: sqsQueues(client), requests: requestHandler.requests };
}

test('dead letters that stay visible are received once, and receiving ends', async () => {
  const { queues, requests } = queueOf(['m2', 'm1'], ['m1', 'm2'], ['m1', 'm3'], ['m1', 'm2', 'm3']);
  const letters = await queues.receive(URL, { limit: 10, hideS: 0 });
  expect(letters.map(({ messageId, sentAt, receives }) => [messageId, sentAt, receives])).toEqual([
    ['m1', 1, 6],
    ['m2', 2, 6],
    ['m3', 3, 6],
  ]);
  expect(requests).toHaveLength(6); // until three in a row brought nothing new
  expect(requests[0]).toMatchObject({ VisibilityTimeout: 0, MaxNumberOfMessages: 10 });
});

test('no more dead letters are received than requested', async () => {
  const { queues, requests } = queueOf(['m1', 'm2'], ['m3']);
  await expect(queues.receive(URL, { limit: 2 })).resolves.toHaveLength(2);
  expect(requests).toHaveLength(1);
  expect(requests[0]).toMatchObject({ VisibilityTimeout: 30, MaxNumberOfMessages: 2 });
});

test('an empty queue is polled three times, because a short poll queries only some of its servers', async () => {
  const { queues, requests } = queueOf([]);
  await expect(queues.receive(URL, { limit: 5 })).resolves.toEqual([]);
  expect(requests).toHaveLength(3);
});

test('messages in flight and delayed messages count as in flight', async () => {
  const Attributes = {
    QueueArn: 'arn:aws:sqs:eu-west-1:000000000000:letters',
    MessageRetentionPeriod: '60',
    ApproximateNumberOfMessages: '1',
    ApproximateNumberOfMessagesNotVisible: '2',
    ApproximateNumberOfMessagesDelayed: '4',
  };
  const requestHandler = stubHandler(() => ({ status: 200, body: { Attributes } }));
  const queues = sqsQueues(new SQSClient({ ...STUB_CONFIGURATION, requestHandler: requestHandler as never }));
  const expected = { arn: Attributes.QueueArn, waiting: 1, inFlight: 6, retentionMs: 60_000 };
  await expect(queues.depth(URL)).resolves.toEqual(expected);
});

test.each([
  ['ReceiptHandleIsInvalid', 'The input receipt handle is invalid.'],
  [
    'InvalidParameterValue',
    'Value r for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.',
  ],
])('a dead letter received by someone else since is left to them: %s', async (code, message) => {
  const requestHandler = stubHandler(() => ({ status: 400, body: { __type: code, message } }));
  const queues = sqsQueues(new SQSClient({ ...STUB_CONFIGURATION, requestHandler: requestHandler as never }));
  const letter = { messageId: 'm1', receiptHandle: 'r', body: '', sentAt: 1, attributes: {} };
  await queues.remove(URL, letter);
  await queues.show(URL, letter);
  expect(requestHandler.requests).toHaveLength(2);
});

test('any other failure to delete a dead letter is thrown', async () => {
  const body = { __type: 'InvalidParameterValue', message: 'Value x for parameter QueueUrl is invalid' };
  const requestHandler = stubHandler(() => ({ status: 400, body }));
  const queues = sqsQueues(new SQSClient({ ...STUB_CONFIGURATION, requestHandler: requestHandler as never }));
  const letter = { messageId: 'm1', receiptHandle: 'r', body: '', sentAt: 1, attributes: {} };
  await expect(queues.remove(URL, letter)).rejects.toThrow('QueueUrl');
});
