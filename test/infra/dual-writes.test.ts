import { Annotations as Messages, Stack } from 'aws-cdk-lib';
import { Annotations, Match } from 'aws-cdk-lib/assertions';
import { EventBus } from 'aws-cdk-lib/aws-events';
import { PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Code, Function as LambdaFunction, Runtime, StartingPosition } from 'aws-cdk-lib/aws-lambda';
import { SqsDestination } from 'aws-cdk-lib/aws-lambda-destinations';
import { DynamoEventSource, SqsDlq } from 'aws-cdk-lib/aws-lambda-event-sources';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { expect, test } from 'vitest';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { InboxConsumer, Mailroom, type MailroomBus, ServiceFunction } from '../../lib/index.ts';
import { testApp } from './synth.ts';

const placed = { source: 'orders', type: 'OrderPlaced' };
const entry = lambdaEntry('example/inventory/handler');
const INLINE = { runtime: Runtime.NODEJS_24_X, handler: 'index.handler', code: Code.fromInline('0') };

/** The actions that the warnings name, by role; empty without a warning. */
function warned(build: (stack: Stack, mailroom: Mailroom) => void): Readonly<Record<string, string>> {
  const stack = new Stack(testApp(), 'Test');
  const mailroom = new Mailroom(stack, 'Mailroom', { sources: ['orders'], audit: {}, heartbeat: {} });
  build(stack, mailroom);
  const found = Annotations.fromStack(stack).findWarning('*', Match.stringLikeRegexp('without the outbox'));
  return Object.fromEntries(
    found.map(({ id, entry: { data } }) => [
      id.replace('/Test/', ''),
      /also call (.*) without the outbox/.exec(String(data))?.[1] ?? '',
    ]),
  );
}

function producer(stack: Stack, mailroom: Mailroom, publishAtOnce?: object): ServiceFunction {
  const api = new ServiceFunction(stack, 'Api', { entry, service: 'orders' });
  mailroom.addProducer(api, { service: 'orders', publishes: [placed], publishAtOnce });
  return api;
}

function consumer(stack: Stack, mailroom: Mailroom, domainKeys: string[] = []): InboxConsumer {
  return new InboxConsumer(stack, 'Consumer', {
    mailroom,
    name: 'one',
    service: 'one',
    events: [placed],
    entry,
    domainKeys,
  });
}

test('a producer that may also publish without the outbox is reported, with all its calls', () => {
  expect(
    warned((stack, mailroom) => {
      const api = producer(stack, mailroom);
      // Later than addProducer: the order of calls does not matter.
      new EventBus(stack, 'Other').grantPutEventsTo(api);
      new Topic(stack, 'Topic').grantPublish(api);
      new Queue(stack, 'Queue').grantSendMessages(api);
    }),
  ).toEqual({ ApiRole: 'events:PutEvents, sns:Publish, sqs:SendMessage' });
});

test.each([
  ['sns:*', 'sns:Publish'],
  ['*', 'events:PutEvents, sns:Publish, sqs:SendMessage'],
  ['sqs:sendmessage', 'sqs:SendMessage'],
  ['sqs:Send*', 'sqs:SendMessage'],
])('the action %s covers %s', (action, calls) => {
  expect(
    warned((stack, mailroom) =>
      producer(stack, mailroom).addToRolePolicy(new PolicyStatement({ actions: [action], resources: ['*'] })),
    ),
  ).toEqual({ ApiRole: calls });
});

test('a function, a consumer with domain rows and a role of a container are checked alike', () => {
  expect(
    warned((stack, mailroom) => {
      const topic = new Topic(stack, 'Topic');
      const own = new LambdaFunction(stack, 'Own', INLINE);
      mailroom.addProducer(own, { service: 'orders', publishes: [placed] });
      topic.grantPublish(own);
      topic.grantPublish(consumer(stack, mailroom, ['POINTS#*']).function);
      const task = new Role(stack, 'Task', { assumedBy: new ServicePrincipal('ecs-tasks.amazonaws.com') });
      mailroom.table.grantOutbox(task);
      topic.grantPublish(task);
    }),
  ).toEqual({
    'Own/ServiceRole': 'sns:Publish',
    'Consumer/FunctionRole': 'sns:Publish',
    Task: 'sns:Publish',
  });
});

test("Mailroom's own permissions, and those of Lambda's failure destinations, are not reported", () => {
  expect(
    warned((stack, mailroom) => {
      const api = producer(stack, mailroom, {});
      api.configureAsyncInvoke({ onFailure: new SqsDestination(new Queue(stack, 'Failed')) });
      const own = new LambdaFunction(stack, 'Own', { ...INLINE, deadLetterQueue: new Queue(stack, 'Dead') });
      own.addEventSource(
        new DynamoEventSource(mailroom.table, {
          startingPosition: StartingPosition.LATEST,
          onFailure: new SqsDlq(new Queue(stack, 'Unread')),
        }),
      );
      mailroom.addProducer(own, { service: 'orders', publishes: [placed] });
      consumer(stack, mailroom, ['POINTS#*']);
      const reader = new ServiceFunction(stack, 'Reader', { entry, service: 'reader' });
      new Topic(stack, 'Topic').grantPublish(reader); // has no right to write rows
      api.addToRolePolicy(
        new PolicyStatement({ actions: ['sqs:ReceiveMessage', 'sns:List*'], resources: ['*'] }),
      );
    }),
  ).toEqual({});
});

test('publishing on the bus of the Mailroom is reported unless publishAtOnce allows it', () => {
  expect(
    warned((stack, mailroom) =>
      (mailroom.bus as MailroomBus).grantPublish(producer(stack, mailroom), () => ['orders']),
    ),
  ).toEqual({ ApiRole: 'events:PutEvents' });
});

test('the warning can be acknowledged', () => {
  expect(
    warned((stack, mailroom) => {
      new Topic(stack, 'Topic').grantPublish(producer(stack, mailroom));
      Messages.of(stack).acknowledgeWarning('cdk-mailroom:dualWrite', 'A metric of visits');
    }),
  ).toEqual({});
});
