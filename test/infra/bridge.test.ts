import { Stack } from 'aws-cdk-lib';
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions';
import { Connections, Port, SecurityGroup, Vpc } from 'aws-cdk-lib/aws-ec2';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { Stream } from 'aws-cdk-lib/aws-kinesis';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { strict } from '../../lambdas/runtime/base/order.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import {
  type BridgeDestination,
  bridgeTo,
  InboxConsumer,
  type InboxConsumerProps,
  Mailroom,
} from '../../lib/index.ts';
import { resources, testApp } from './synth.ts';

const Placed = defineEvent({
  source: 'orders',
  type: 'OrderPlaced',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({}),
  sequence: true,
});

/** A stack with a bridge, and the variables, the rights and the entry in the directory of its function. */
function bridge(
  targetOf: (stack: Stack) => BridgeDestination,
  propsOf: (stack: Stack) => Partial<InboxConsumerProps> = () => ({}),
) {
  const stack = new Stack(testApp(), 'Test');
  const mailroom = new Mailroom(stack, 'Mailroom', { sources: ['orders'] });
  new InboxConsumer(stack, 'ToPartner', {
    mailroom,
    name: 'to-partner',
    service: 'bridge',
    events: [Placed],
    entry: lambdaEntry('example/inventory/handler'),
    forwardsTo: targetOf(stack),
    ...propsOf(stack),
  });
  const template = Template.fromStack(stack);
  const [handler] = Object.values(resources(template, 'AWS::Lambda::Function')).filter(
    ({ Properties }) => Properties.Environment?.Variables.MAILROOM_CONSUMER === 'to-partner',
  );
  const policies = ['AWS::IAM::Policy', 'AWS::IAM::ManagedPolicy']
    .flatMap((type) => Object.entries(resources(template, type)))
    .filter(([id]) => id.startsWith('ToPartner'))
    .map(([, policy]) => JSON.stringify(policy));
  const entries = JSON.stringify(resources(template, 'AWS::SSM::Parameter')).replaceAll('\\', '');
  return {
    stack,
    template,
    variables: handler?.Properties.Environment.Variables,
    policy: policies.join(),
    entries,
    warnings: Annotations.fromStack(stack)
      .findWarning('*', Match.stringLikeRegexp('^forwardsTo'))
      .map(({ entry }) => String(entry.data)),
  };
}

describe('a bridge may send to its target, and knows its address:', () => {
  test.each<[string, (stack: Stack) => BridgeDestination, string, RegExp]>([
    [
      'a queue',
      (stack) => bridgeTo.queue(new Queue(stack, 'Partner')),
      'sqs:SendMessage',
      /"kind":"SQS","name":"queue /,
    ],
    [
      'a topic',
      (stack) => bridgeTo.topic(new Topic(stack, 'Partner')),
      'sns:Publish',
      /"kind":"SNS","name":"topic /,
    ],
    [
      'a stream',
      (stack) => bridgeTo.stream(new Stream(stack, 'Partner')),
      'kinesis:PutRecords',
      /"kind":"Kinesis","name":"stream /,
    ],
  ])('%s', (_, targetOf, action, entry) => {
    const { variables, policy, entries, warnings } = bridge(targetOf);
    expect(JSON.stringify(variables.MAILROOM_BRIDGE_TO)).toMatch(
      /^\{("Ref":"Partner|"Fn::GetAtt":\["Partner\w+","Arn"\])/,
    );
    expect(policy).toContain(`"${action}"`);
    expect(entries).toMatch(entry);
    expect(warnings).toEqual([]);
  });

  test('a stream of another account, by its ARN', () => {
    const arn = 'arn:aws:kinesis:eu-west-1:111122223333:stream/partner';
    const { variables, entries } = bridge((stack) =>
      bridgeTo.stream(Stream.fromStreamArn(stack, 'Partner', arn)),
    );
    expect(variables.MAILROOM_BRIDGE_TO).toBe(arn);
    expect(entries).toContain('"name":"stream partner"');
  });

  test('a broker, with its secret, its rights and its security group', () => {
    const { template, variables, policy, entries } = bridge(
      (stack) => {
        const vpc = new Vpc(stack, 'Vpc');
        const cluster = new Connections({
          securityGroups: [new SecurityGroup(stack, 'Brokers', { vpc })],
          defaultPort: Port.tcp(1),
        });
        return bridgeTo.broker({
          kind: 'Kafka',
          name: 'topic orders',
          addresses: 'b1:9098,b2:9098',
          cluster: { connections: cluster },
          port: 9_098,
          secret: new Secret(stack, 'Secret'),
          policy: [new PolicyStatement({ actions: ['kafka-cluster:WriteData'], resources: ['*'] })],
        });
      },
      (stack) => ({ function: { vpc: stack.node.findChild('Vpc') as Vpc } }),
    );
    expect(variables).toMatchObject({
      MAILROOM_BRIDGE_TO: 'b1:9098,b2:9098',
      MAILROOM_BRIDGE_SECRET: { Ref: expect.stringMatching(/^Secret/) },
    });
    expect(policy).toContain('secretsmanager:GetSecretValue');
    expect(policy).toContain('kafka-cluster:WriteData');
    expect(entries).toContain('"forwardsTo":{"kind":"Kafka","name":"topic orders"}');
    template.hasResourceProperties('AWS::EC2::SecurityGroupIngress', { FromPort: 9_098, ToPort: 9_098 });
  });
});

test('a bridge to a cluster without a VPC or a port is refused', () => {
  const targetOf = (stack: Stack) => {
    const vpc = new Vpc(stack, 'Vpc');
    const cluster = {
      connections: new Connections({ securityGroups: [new SecurityGroup(stack, 'Brokers', { vpc })] }),
    };
    return bridgeTo.broker({ kind: 'RabbitMQ', name: 'exchange orders', addresses: 'amqps://b1', cluster });
  };
  expect(() => bridge(targetOf)).toThrow(/forwardsTo has a cluster but no port\.[\s\S]*function has no vpc/);
});

test('a FIFO target without a strict order is warned of', () => {
  const fifo = (stack: Stack) => bridgeTo.queue(new Queue(stack, 'Partner', { fifo: true }));
  const topic = (stack: Stack) => bridgeTo.topic(new Topic(stack, 'Partner', { fifo: true }));
  for (const targetOf of [fifo, topic])
    expect(bridge(targetOf).warnings).toEqual([
      expect.stringMatching(/^forwardsTo is a FIFO target of S[QN]S, but .* in any order/),
    ]);
  expect(bridge(fifo, () => ({ order: strict() })).warnings).toEqual([]);
});
