import { expect, test } from 'vitest';
import { deployProgress } from '../../../localstack/deploy-progress.ts';

test('the output of the CDK becomes a step with details', () => {
  const steps: string[] = [];
  const details: string[] = [];
  const onLine = deployProgress({
    onProgress: (line) => steps.push(line),
    onDetail: (text) => details.push(text),
  });
  const output = [
    'Bundling asset Orders/Api/Code/Stage...',
    'npm warn something',
    'Bundling asset Payments/Payments/Function/Code/Stage...',
    'Bank: deploying... [1/7]',
    'Mailroom (mailroom-local): deploying... [2/7]',
    'mailroom-local | CREATE_COMPLETE | AWS::SQS::Queue | Queue',
    ' ✅  Bank (mailroom-local-bank)',
  ];
  for (const line of output) onLine(line);
  expect(steps).toEqual(['Deploying the stacks']);
  expect(details).toEqual([
    'function 1: Orders/Api',
    'function 2: Payments',
    'Bank',
    'Mailroom',
    'Bank is deployed',
  ]);
});
