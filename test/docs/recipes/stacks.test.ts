import { type App, Duration, Stack } from 'aws-cdk-lib';
import { Match, Template } from 'aws-cdk-lib/assertions';
import type { Construct } from 'constructs';
import { expect, test } from 'vitest';
import { readProducerConfig } from '../../../lambdas/runtime/index.ts';
import { InboxConsumer } from '../../../lib/inbox-consumer.ts';
import { Mailroom } from '../../../lib/mailroom.ts';
import { resources, testApp } from '../../infra/synth.ts';
import { codeOf, inFolderOf } from '../page-module.ts';

/** A stack that a page shows, made for a Mailroom. */
type StackOf = new (scope: Construct, id: string, mailroom: Mailroom) => Stack;

const http = 'docs/recipes/http-service.md';
const several = 'docs/recipes/several-consumers.md';
const existing = 'docs/recipes/existing-table.md';
const external = 'docs/recipes/external-events.md';
const packing = 'docs/recipes/long-work.md';
const sst = 'docs/recipes/sst.md';
const webhooks = 'docs/recipes/webhooks.md';

// Loaded here and not in the tests: the CDK takes seconds.
const { ContainerStack } = await codeOf<{ ContainerStack: StackOf }>(http, 'lib/container-stack.ts');
const { services } = await codeOf<{ services(app: App): Mailroom }>(several, 'lib/services.ts');
const { OrdersStack } = await codeOf<{ OrdersStack: StackOf }>(existing, 'lib/orders-stack.ts');
const { PhotosStack } = await codeOf<{ PhotosStack: StackOf }>(external, 'lib/photos-stack.ts');
const { PackingStack } = await codeOf<{ PackingStack: StackOf }>(packing, 'lib/packing-stack.ts');
const { MailroomStack } = await codeOf<{ MailroomStack: new (scope: Construct, id: string) => Stack }>(
  sst,
  'lib/mailroom-stack.ts',
);
const { WebhooksStack } = await codeOf<{ WebhooksStack: StackOf }>(webhooks, 'lib/webhooks-stack.ts');
const { WebhookStack } = await codeOf<{ WebhookStack: StackOf }>(external, 'lib/webhook-stack.ts');

test('http-service.md: a container gets the settings and permissions of a producer', () => {
  const { mailroom, template } = synth(http, ContainerStack);
  const [task] = Object.values(resources(template, 'AWS::ECS::TaskDefinition'));
  const environment: { Name: string; Value: unknown }[] =
    task?.Properties.ContainerDefinitions[0].Environment;
  const env = Object.fromEntries(
    environment.map(({ Name, Value }) => [Name, typeof Value === 'string' ? Value : 'table']),
  );
  expect(readProducerConfig(env)).toEqual({
    ...mailroom.producerConfig('orders', [{ source: 'orders', type: 'OrderPlaced' }]),
    tableName: 'table',
  });
  const policies = JSON.stringify(resources(template, 'AWS::IAM::Policy'));
  expect(policies).toContain('"dynamodb:LeadingKeys":["OUTBOX#*"]');
  expect(policies).toContain('"dynamodb:LeadingKeys":["ORDER#*","REQUEST#*"]');
});

test('webhooks.md: only the function that sends reaches what waits, and has time for a call and a token', () => {
  const { template } = synth(webhooks, WebhooksStack);
  const texts = Object.entries(resources(template, 'AWS::Lambda::Function')).map(([id, { Properties }]) => [
    id.startsWith('Webhooks'),
    Properties.Timeout,
  ]);
  expect(texts).toContainEqual([true, 45]);
  const keys = JSON.stringify(template.toJSON()).match(/"WEBHOOKS#\*"(,"WAITING#\*")?/g);
  expect(new Set(keys)).toEqual(new Set(['"WEBHOOKS#*"', '"WEBHOOKS#*","WAITING#*"']));
});

test('sst.md: the stack gives the settings and permissions of a producer to a function of another tool', () => {
  const stack = inFolderOf(sst, () => new MailroomStack(testApp(), 'mailroom-dev'));
  const template = Template.fromStack(stack);
  const [environment] = Object.values(template.findOutputs('OrdersEnvironment'));
  // The table's name is the one reference in the text.
  const text = environment?.Value['Fn::Join'][1].map((part: unknown) =>
    typeof part === 'string' ? part : 'table',
  );
  expect(readProducerConfig(JSON.parse(text.join('')))).toMatchObject({
    ...{ service: 'orders', publishes: ['OrderPlaced'], tableName: 'table' },
  });
  const [policy] = Object.values(template.findOutputs('OrdersPolicy'));
  const granted = JSON.stringify(template.toJSON().Resources[policy?.Value.Ref]);
  expect(granted).toContain('"dynamodb:LeadingKeys":["OUTBOX#*"]');
  expect(granted).toContain('"dynamodb:LeadingKeys":["ORDER#*"]');
});

test('several-consumers.md: each consumer has its own stack, rule and inbox', () => {
  const app = testApp();
  const mailroom = inFolderOf(several, () => services(app));
  expect(mailroom.consumers.map(({ name }) => name)).toEqual(['payments', 'loyalty']);
  for (const consumer of mailroom.consumers) {
    const template = Template.fromStack(Stack.of(consumer));
    template.hasResourceProperties('AWS::Events::Rule', {
      EventPattern: {
        $or: [
          { source: ['orders'], 'detail-type': ['OrderPlaced'] },
          { source: ['mailroom'], 'detail-type': ['Heartbeat'] },
        ],
      },
    });
    const policies = JSON.stringify(resources(template, 'AWS::IAM::ManagedPolicy'));
    expect(policies).toContain(`"INBOX#${consumer.name}#*"`);
    expect(policies.match(/INBOX#/g)).toHaveLength(1);
  }
});

test('existing-table.md: the producer may add events, and put into the table that was there', () => {
  const { template } = synth(existing, OrdersStack);
  template.hasResourceProperties('AWS::Lambda::Function', {
    Environment: { Variables: { ORDERS_TABLE: 'orders', MAILROOM_SERVICE: 'orders' } },
  });
  template.hasResourceProperties('AWS::IAM::ManagedPolicy', {
    PolicyDocument: {
      Statement: Match.arrayWith([
        Match.objectLike({
          Action: ['dynamodb:PutItem', 'dynamodb:UpdateItem'],
          Condition: Match.objectLike({}),
        }),
        Match.objectLike({ Action: 'dynamodb:PutItem', Condition: Match.absent() }),
      ]),
    },
  });
});

test('new-consumer.md: a retention shorter than the archive needs is refused', () => {
  const stack = new Stack(testApp(), 'Shop');
  const mailroom = new Mailroom(stack, 'Mailroom', { archive: Duration.days(30) });
  const events = [{ source: 'orders', type: 'OrderPlaced' }];
  const consumer = {
    mailroom,
    name: 'loyalty',
    service: 'loyalty',
    events,
    inboxRetention: Duration.days(35),
  };
  const create = () => new InboxConsumer(stack, 'Loyalty', { ...consumer, entry: 'src/loyalty.ts' });
  expect(() => inFolderOf(several, create)).toThrow('58 days');
});

test('external-events.md: objects of S3 arrive by a rule on the default bus', () => {
  const { template } = synth(external, PhotosStack);
  template.hasResourceProperties('AWS::Events::Rule', {
    EventBusName: Match.absent(),
    EventPattern: { source: ['aws.s3'], 'detail-type': ['Object Created'] },
  });
});

test('external-events.md: the endpoint only sends to the queue that the consumer reads, and the topic may, too', () => {
  const { template } = synth(external, WebhookStack);
  template.hasResourceProperties('AWS::Lambda::Url', { AuthType: 'NONE' });
  template.resourceCountIs('AWS::Lambda::EventSourceMapping', 1);
  template.resourceCountIs('AWS::Events::Rule', 0);
  const policies = {
    ...resources(template, 'AWS::IAM::Policy'),
    ...resources(template, 'AWS::IAM::ManagedPolicy'),
  };
  const endpoint = Object.entries(policies).filter(([id]) => id.startsWith('Endpoint'));
  const granted = JSON.stringify(endpoint);
  expect(granted).toContain('sqs:SendMessage');
  expect(granted).not.toMatch(/dynamodb:|sqs:ReceiveMessage/);
  template.hasResourceProperties('AWS::SNS::Subscription', { Protocol: 'sqs' });
});

test('long-work.md: the consumer may start the state machine, whose last step may commit', () => {
  const { template } = synth(packing, PackingStack);
  template.hasResourceProperties('AWS::IAM::ManagedPolicy', {
    PolicyDocument: {
      Statement: Match.arrayWith([Match.objectLike({ Action: 'states:StartExecution' })]),
    },
  });
  template.hasResourceProperties('AWS::StepFunctions::StateMachine', { StateMachineType: Match.absent() });
  const policies = JSON.stringify(resources(template, 'AWS::IAM::ManagedPolicy'));
  expect(policies).toContain('"dynamodb:LeadingKeys":["PACKING#*"]');
});

function synth(page: string, Shown: StackOf) {
  const app = testApp();
  const mailroom = new Mailroom(new Stack(app, 'Mailroom'), 'Mailroom');
  const stack = inFolderOf(page, () => new Shown(app, 'Shown', mailroom));
  return { mailroom, template: Template.fromStack(stack) };
}
