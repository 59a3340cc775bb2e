import { SQSClient } from '@aws-sdk/client-sqs';
import { expect, test } from 'vitest';
import { startMove } from '../../../cli/letters/move-task.ts';
import { STUB_CONFIGURATION, stubHandler } from '../../support/stub-client.ts';

const MOVE = { from: 'arn:dead-letters', to: 'arn:queue', ratePerS: 10 };

test('letters are moved inside SQS, but not by a local engine: its moves keep the ids that were rejected', async () => {
  const requestHandler = stubHandler(() => ({ status: 200, body: { TaskHandle: 'task' } }));
  const sqs = new SQSClient({ ...STUB_CONFIGURATION, requestHandler: requestHandler as never });
  expect(await startMove({ sqs, isLocal: true }, MOVE)).toBe(false);
  expect(requestHandler.requests).toEqual([]);
  expect(await startMove({ sqs, isLocal: false }, MOVE)).toBe(true);
  expect(requestHandler.requests).toEqual([expect.objectContaining({ DestinationArn: MOVE.to })]);
});
