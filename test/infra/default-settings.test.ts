import { Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { expect, test } from 'vitest';
import { readProducerConfig, readRelayConfig } from '../../lambdas/runtime/base/config.ts';
import { readConsumerConfig } from '../../lambdas/runtime/base/consumer-config.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { InboxConsumer, Mailroom, ServiceFunction } from '../../lib/index.ts';
import { relayConfig } from '../../testing/default-config.ts';
import { consumerConfig, producerConfig } from '../../testing/index.ts';
import { resources, testApp } from './synth.ts';

/** The one event of the app. */
const PLACED = { source: 'orders', type: 'OrderPlaced' };

/** The environments of the functions of an app that chooses nothing, by the beginnings of their logical ids. */
function environments(): (id: string) => Record<string, string> {
  const stack = new Stack(testApp(), 'Shop');
  const mailroom = new Mailroom(stack, 'Mailroom');
  const entry = lambdaEntry('relay-stream/handler');
  mailroom.addProducer(new ServiceFunction(stack, 'Orders', { entry, service: 'orders' }), {
    service: 'orders',
    publishes: [PLACED],
  });
  new InboxConsumer(stack, 'Payments', {
    mailroom,
    name: 'payments',
    service: 'payments',
    events: [PLACED],
    entry,
  });
  const functions = Object.entries(resources(Template.fromStack(stack), 'AWS::Lambda::Function'));
  return (id) => {
    const found = functions.find(([logicalId]) => logicalId.startsWith(id))?.[1];
    if (found === undefined) throw new Error(`No function ${id}`);
    // What is known to CloudFormation only.
    const unknown = { MAILROOM_TABLE: 'Mailroom', MAILROOM_BUS: 'bus', MAILROOM_QUEUE_URL: 'memory' };
    return { ...found.Properties.Environment.Variables, ...unknown };
  };
}

test('the settings that cdk-mailroom/testing gives are those that the constructs give by default', () => {
  const environmentOf = environments();
  expect(readProducerConfig(environmentOf('Orders'))).toEqual(
    producerConfig({ service: 'orders', publishes: ['OrderPlaced'] }),
  );
  expect(readConsumerConfig(environmentOf('Payments'))).toEqual(
    consumerConfig({ service: 'payments', publishes: [], consumer: 'payments' }),
  );
  for (const relay of ['MailroomRelayStream', 'MailroomRelaySweep']) {
    expect(readRelayConfig(environmentOf(relay)), relay).toEqual(
      relayConfig({ sources: ['mailroom', 'orders'] }),
    );
  }
});
