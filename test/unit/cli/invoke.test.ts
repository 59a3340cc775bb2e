import { LambdaClient } from '@aws-sdk/client-lambda';
import { expect, test } from 'vitest';
import { batches, checkBodies } from '../../../cli/deployment/invoke.ts';
import { STUB_CONFIGURATION, stubHandler } from '../../support/stub-client.ts';

const consumer = { name: 'payments', function: 'payments-function' };

test('bodies are put together up to the size that an invocation takes, in order, none twice', () => {
  // Quotes and line breaks are escaped on the way.
  const bodies = ['a'.repeat(30), '"'.repeat(30), 'b', 'c'.repeat(200), 'd'];
  const made = [...batches(bodies, 99)];
  expect(made.flat()).toEqual(bodies);
  expect(made).toEqual([[bodies[0], bodies[1]], ['b'], [bodies[3]], ['d']]);
  expect([...batches([])]).toEqual([]);
  const many = Array.from({ length: 201 }, (_, n) => `${n}`);
  expect([...batches(many)].map((batch) => batch.length)).toEqual([100, 100, 1]);
  expect([...batches(many)].flat()).toEqual(many);
});

test('a consumer that does not support the check is not reported as able to read everything', async () => {
  // What the handler of SQS messages answers to an invocation without any.
  const handler = stubHandler(() => ({ status: 200, body: { batchItemFailures: [] } }));
  const client = new LambdaClient({ ...STUB_CONFIGURATION, requestHandler: handler });
  await expect(checkBodies(client, consumer, ['a body'])).rejects.toMatchObject({ code: 'OLD_CONSUMER' });
  expect(handler.requests).toEqual([{ mailroomCheck: { bodies: ['a body'] } }]);
});

test('no messages, no call', async () => {
  const handler = stubHandler(() => ({ error: new Error('asked') }));
  const client = new LambdaClient({ ...STUB_CONFIGURATION, requestHandler: handler });
  expect(await checkBodies(client, consumer, [])).toEqual([]);
  expect(handler.requests).toEqual([]);
});
