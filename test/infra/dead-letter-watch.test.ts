import { Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { expect, test } from 'vitest';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { InboxConsumer, Mailroom } from '../../lib/index.ts';
import { resources, testApp } from './synth.ts';

test('the sweep may look into both dead-letter queues of a consumer in its own stack', () => {
  const stack = new Stack(testApp(), 'Test');
  const mailroom = new Mailroom(stack, 'Mailroom');
  new InboxConsumer(stack, 'Consumer', {
    mailroom,
    name: 'one',
    service: 'orders',
    events: [{ source: 'orders', type: 'OrderPlaced' }],
    entry: lambdaEntry('example/inventory/handler'),
  });
  const policies = Object.entries(resources(Template.fromStack(stack), 'AWS::SQS::QueuePolicy'));
  const looking = policies.filter(([, { Properties }]) =>
    Properties.PolicyDocument.Statement.some(
      ({ Sid }: { readonly Sid?: string }) => Sid === 'TheSweepLooksAtDeadLetters',
    ),
  );
  expect(looking.map(([id]) => id.replace(/Policy\w+$/, ''))).toEqual([
    'ConsumerDeadLetters',
    'ConsumerUndelivered',
  ]);
});
