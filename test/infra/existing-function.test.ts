import { Duration, Stack } from 'aws-cdk-lib';
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions';
import { SecurityGroup, Vpc } from 'aws-cdk-lib/aws-ec2';
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import {
  Alias,
  CapacityProvider,
  Code,
  Function as LambdaFunction,
  Runtime,
  Version,
} from 'aws-cdk-lib/aws-lambda';
import { NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { describe, expect, test } from 'vitest';
import { readConsumerConfig } from '../../lambdas/runtime/base/consumer-config.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import {
  type ConsumerFunctionProps,
  DeliveryAlarms,
  InboxConsumer,
  type InboxConsumerProps,
  Mailroom,
} from '../../lib/index.ts';
import { type Resource, resources, testApp } from './synth.ts';

const ORDER_PLACED = { source: 'shop', type: 'OrderPlaced' };
const CAPTURED = { source: 'payments', type: 'PaymentCaptured' };
const DECLINED = { source: 'payments', type: 'PaymentDeclined' };

function mailroomStack() {
  const stack = new Stack(testApp(), 'Test');
  return { stack, mailroom: new Mailroom(stack, 'Mailroom', { sources: ['shop'] }) };
}

/** A function as an app has it: of the CDK's own construct, with its own variables. */
function nodejsFunction(stack: Stack, id = 'Worker', props = {}): NodejsFunction {
  return new NodejsFunction(stack, id, {
    entry: lambdaEntry('example/inventory/handler'),
    runtime: Runtime.NODEJS_22_X,
    timeout: Duration.minutes(1),
    environment: { GREETING: 'hello' },
    ...props,
  });
}

function inlineFunction(stack: Stack, props = {}): LambdaFunction {
  const code = Code.fromInline('x');
  return new LambdaFunction(stack, 'Worker', {
    code,
    handler: 'index.handler',
    runtime: Runtime.NODEJS_24_X,
    ...props,
  });
}

function consumer(
  stack: Stack,
  mailroom: Mailroom,
  props: Partial<InboxConsumerProps>,
  id = 'Consumer',
): InboxConsumer {
  return new InboxConsumer(stack, id, {
    mailroom,
    name: id.toLowerCase(),
    service: 'payments',
    events: [ORDER_PLACED],
    ...props,
  });
}

function only(template: Template, type: string, id = /./): Resource {
  const found = Object.entries(resources(template, type)).filter(([logicalId]) => id.test(logicalId));
  const [first] = found;
  if (first === undefined || found.length > 1) throw new Error(`${found.length} resources of ${type}`);
  return first[1];
}

const worker = (template: Template) => only(template, 'AWS::Lambda::Function', /^Worker/).Properties;
const mapping = (template: Template) =>
  only(template, 'AWS::Lambda::EventSourceMapping', /^(Worker|Live)/).Properties;
const directoryText = (template: Template) =>
  JSON.stringify(only(template, 'AWS::SSM::Parameter', /^ConsumerDirectoryEntry/).Properties.Value);

describe('an existing function that consumes', () => {
  const { stack, mailroom } = mailroomStack();
  const existing = nodejsFunction(stack);
  consumer(stack, mailroom, { function: { existing }, publishes: [CAPTURED], domainKeys: ['PAYMENT#*'] });
  const template = Template.fromStack(stack);

  test('keeps its settings, and gets an environment that the runtime reads', () => {
    const { Environment, Timeout, Runtime } = worker(template);
    expect({ Timeout, Runtime }).toEqual({ Timeout: 60, Runtime: 'nodejs22.x' });
    expect(Environment.Variables.GREETING).toBe('hello');
    const variables = { ...Environment.Variables, MAILROOM_TABLE: 'table', MAILROOM_QUEUE_URL: 'url' };
    expect(readConsumerConfig(variables)).toMatchObject({
      consumer: 'consumer',
      service: 'payments',
      publishes: ['PaymentCaptured'],
      visibilityTimeoutMs: 360_000,
    });
  });

  test('processes the queue, whose messages are hidden for six of its timeouts', () => {
    expect(mapping(template)).toMatchObject({
      FunctionName: { Ref: expect.stringMatching(/^Worker/) },
      EventSourceArn: { 'Fn::GetAtt': [expect.stringMatching(/^ConsumerQueue/), 'Arn'] },
      FunctionResponseTypes: ['ReportBatchItemFailures'],
    });
    expect(only(template, 'AWS::SQS::Queue', /^ConsumerQueue/).Properties.VisibilityTimeout).toBe(360);
  });

  test('may keep the inbox, write its rows and publish', () => {
    const { PolicyDocument } = only(template, 'AWS::IAM::Policy', /^WorkerServiceRole/).Properties;
    const text = JSON.stringify(PolicyDocument);
    for (const part of ['INBOX#consumer#*', 'PAYMENT#*', 'OUTBOX#*', 'sqs:ReceiveMessage'])
      expect(text).toContain(part);
  });

  test('its role has the tag by which queues refuse its messages', () => {
    expect(only(template, 'AWS::IAM::Role', /^WorkerServiceRole/).Properties.Tags).toEqual(
      expect.arrayContaining([
        { Key: 'mailroom', Value: 'Test/Mailroom' },
        { Key: 'mailroom:consumer', Value: 'consumer' },
        { Key: 'mailroom:service', Value: 'payments' },
      ]),
    );
  });

  test('the function is deployed after the name of its inbox and before the rule', () => {
    const dependencies = (type: string, id: RegExp) => only(template, type, id).DependsOn ?? [];
    expect(dependencies('AWS::Lambda::Function', /^Worker/)).toContainEqual(
      expect.stringMatching(/^ConsumerName0consumer/),
    );
    expect(dependencies('AWS::Events::Rule', /^ConsumerRule/)).toContainEqual(
      expect.stringMatching(/^Worker[0-9A-F]{8}$/),
    );
  });

  test("the directory contains the function's name without an alias", () => {
    expect(directoryText(template)).toContain('\\"function\\":\\"');
    expect(directoryText(template)).not.toContain('alias');
  });
});

describe('an alias of an existing function', () => {
  const { stack, mailroom } = mailroomStack();
  const existing = nodejsFunction(stack);
  const alias = new Alias(stack, 'Live', { aliasName: 'live', version: existing.currentVersion });
  const made = consumer(stack, mailroom, { function: { existing: alias } });
  const topic = new Topic(stack, 'Topic');
  new DeliveryAlarms(stack, 'Alarms', { mailroom, alarms: { page: topic, ticket: topic } });
  const template = Template.fromStack(stack);

  test('processes the queue, with the environment of the function', () => {
    expect(JSON.stringify(mapping(template).FunctionName)).toContain('":live"');
    expect(worker(template).Environment.Variables.MAILROOM_CONSUMER).toBe('consumer');
    expect(made.function).toBe(existing);
    expect(made.alias).toBe(alias);
  });

  test('points to a version that is published again when a setting of the consumer changes', () => {
    const versionWith = (props: Partial<InboxConsumerProps>) => {
      const { stack, mailroom } = mailroomStack();
      const other = nodejsFunction(stack);
      const live = new Alias(stack, 'Live', { aliasName: 'live', version: other.currentVersion });
      consumer(stack, mailroom, { function: { existing: live }, ...props });
      return Object.keys(resources(Template.fromStack(stack), 'AWS::Lambda::Version'));
    };
    expect(versionWith({})).toEqual(versionWith({}));
    expect(versionWith({ lease: Duration.seconds(20) })).not.toEqual(versionWith({}));
  });

  test('the alias is deployed before the rule', () => {
    expect(only(template, 'AWS::Events::Rule', /^ConsumerRule/).DependsOn).toContainEqual(
      expect.stringMatching(/^Live[0-9A-F]{8}$/),
    );
  });

  test('the directory entry names the alias', () => {
    expect(directoryText(template)).toContain('\\"alias\\":\\"live\\"');
  });

  test("alarms measure the alias, and the log search names the function's group without a new resource", () => {
    const errors = JSON.stringify(resources(template, 'AWS::CloudWatch::Alarm'));
    expect(errors).toMatch(
      /"Name":"Resource","Value":\{"Fn::Join":\["",\[\{"Ref":"Worker[^}]*\},":live"\]\]\}/,
    );
    expect(errors).toContain('aws logs tail /aws/lambda/');
    expect(Object.keys(resources(template, 'Custom::LogRetention'))).toEqual([]);
  });

  test('causes a warning if its version is not published again', () => {
    const { stack, mailroom } = mailroomStack();
    const version = new Version(stack, 'Version', { lambda: nodejsFunction(stack) });
    consumer(stack, mailroom, {
      function: { existing: new Alias(stack, 'Live', { aliasName: 'live', version }) },
    });
    Annotations.fromStack(stack).hasWarning(
      '/Test/Consumer',
      Match.stringLikeRegexp("alias live points to Test/Version, .* function's currentVersion"),
    );
  });
});

describe('a function that publishes and consumes', () => {
  const published = (consumeFirst: boolean) => {
    const { stack, mailroom } = mailroomStack();
    const both = nodejsFunction(stack);
    const produce = () => mailroom.addProducer(both, { service: 'payments', publishes: [DECLINED] });
    if (!consumeFirst) produce();
    consumer(stack, mailroom, { function: { existing: both }, publishes: [CAPTURED] });
    if (consumeFirst) produce();
    return JSON.parse(worker(Template.fromStack(stack)).Environment.Variables.MAILROOM_PUBLISHES).sort();
  };

  test.each([true, false])(
    'may publish the events of both, whichever is declared first: %s',
    (consumeFirst) => {
      expect(published(consumeFirst)).toEqual(['PaymentCaptured', 'PaymentDeclined']);
    },
  );

  test('a function is refused with two services or two Mailrooms', () => {
    const { stack, mailroom } = mailroomStack();
    const both = nodejsFunction(stack);
    mailroom.addProducer(both, { service: 'payments', publishes: [CAPTURED] });
    expect(() => consumer(stack, mailroom, { function: { existing: both }, service: 'orders' })).toThrow(
      'service is "orders", but the function Test/Worker already publishes as "payments"',
    );
    const other = new Mailroom(stack, 'Other', { sources: ['shop'] });
    expect(() => consumer(stack, other, { function: { existing: both } }, 'Second')).toThrow(
      'The function Test/Worker already belongs to the Mailroom Test/Mailroom',
    );
    expect(() => other.addProducer(both, { service: 'payments', publishes: [CAPTURED] })).toThrow(
      'The function Test/Worker already belongs to the Mailroom Test/Mailroom',
    );
  });
});

describe('an existing function is refused', () => {
  type Given = ConsumerFunctionProps['existing'];
  const refusal = (given: (stack: Stack) => Given, props: Partial<InboxConsumerProps> = {}) => {
    const { stack, mailroom } = mailroomStack();
    const existing = given(stack);
    return () => consumer(stack, mailroom, { ...props, function: { ...props.function, existing } });
  };

  test('a consumer is refused with both a function and an entry, and with neither', () => {
    const entry = lambdaEntry('example/inventory/handler');
    expect(refusal(nodejsFunction, { entry })).toThrow(
      'entry and function.existing are both set. Set entry to the path',
    );
    expect(refusal(() => undefined)).toThrow(
      'entry and function.existing are both missing. Set entry to the path',
    );
  });

  test.each([
    ['timeout', { function: { timeout: Duration.seconds(10) } }],
    ['checkHandlers', { function: { checkHandlers: false } }],
    ['vpc', { function: { vpc: {} as never } }],
    ['alias', { function: { alias: { aliasName: 'live' } } }],
  ])('a consumer is refused with an existing function and %s', (name, props) => {
    expect(refusal(nodejsFunction, props)).toThrow(
      `function.${name} is set, but only a function that the consumer creates takes it. Set it on Test/Worker instead.`,
    );
  });

  test('an imported function is refused, also behind an alias', () => {
    const arn = 'arn:aws:lambda:eu-west-1:111122223333:function:worker';
    const imported = (stack: Stack) => LambdaFunction.fromFunctionArn(stack, 'Imported', arn) as never;
    expect(refusal(imported)).toThrow(
      /function\.existing is Test\/Imported, which is imported or not a Function.*without-cdk/,
    );
    const aliased = (stack: Stack) => {
      const version = Version.fromVersionArn(stack, 'V', `${arn}:1`);
      return new Alias(stack, 'Live', { aliasName: 'live', version });
    };
    expect(refusal(aliased)).toThrow('which is imported or not a Function');
  });

  test('a function without a known timeout is refused', () => {
    expect(refusal((stack) => inlineFunction(stack))).toThrow(
      "The timeout of Test/Worker is not set, so it is Lambda's 3 seconds",
    );
  });

  test('a function is refused if its timeout is longer than the visibility timeout', () => {
    expect(refusal(nodejsFunction, { queue: { visibilityTimeout: Duration.seconds(30) } })).toThrow(
      "queue.visibilityTimeout is 30 seconds, but must be at least the function's timeout, 1 minute",
    );
  });

  test.each([Runtime.NODEJS_18_X, Runtime.PYTHON_3_13])(
    'a function is refused if its runtime cannot run Mailroom: %s',
    (runtime) => {
      expect(refusal((stack) => inlineFunction(stack, { runtime, timeout: Duration.seconds(30) }))).toThrow(
        `The runtime of Test/Worker is ${runtime.name}, but must be nodejs20.x or later, which Mailroom's runtime library needs. Set it, e.g. to ` +
          "Runtime.NODEJS_24_X; without it, the CDK's default depends on the feature flags in cdk.json, which an App in a unit test does not read.",
      );
    },
  );

  test('a function is refused with more concurrency than it reserves', () => {
    const reserved = (stack: Stack) => nodejsFunction(stack, 'Worker', { reservedConcurrentExecutions: 10 });
    expect(refusal(reserved, { queue: { maxConcurrency: 50 } })).toThrow(
      'queue.maxConcurrency is 50, but the function reserves 10 concurrent executions',
    );
    const { stack, mailroom } = mailroomStack();
    consumer(stack, mailroom, { function: { existing: reserved(stack) } });
    expect(mapping(Template.fromStack(stack)).ScalingConfig).toEqual({ MaximumConcurrency: 10 });
  });

  test('a function is refused if another consumer uses it, also through another alias', () => {
    const { stack, mailroom } = mailroomStack();
    const shared = nodejsFunction(stack);
    consumer(stack, mailroom, { function: { existing: shared } }, 'First');
    expect(() =>
      consumer(stack, mailroom, { function: { existing: shared.addAlias('live') } }, 'Second'),
    ).toThrow(
      'The consumer Test/Second has invalid settings: function.existing is Test/Worker, which Test/First already uses',
    );
  });

  test('a function of another stack, or with a role that cannot be tagged, is refused', () => {
    const app = testApp();
    const elsewhere = nodejsFunction(new Stack(app, 'Elsewhere'));
    const stack = new Stack(app, 'Test');
    const mailroom = new Mailroom(stack, 'Mailroom', { sources: ['shop'] });
    expect(() => consumer(stack, mailroom, { function: { existing: elsewhere } })).toThrow(
      'function.existing is Elsewhere/Worker, which is in another stack (Elsewhere)',
    );
    const own = nodejsFunction(stack, 'Own');
    const version = own.currentVersion;
    const away = new Alias(new Stack(app, 'Away'), 'Live', { aliasName: 'live', version });
    expect(() => consumer(stack, mailroom, { function: { existing: away } }, 'Second')).toThrow(
      'function.existing is Away/Live, which is in another stack (Away)',
    );
    const imported = (stack: Stack) =>
      nodejsFunction(stack, 'Worker', { role: Role.fromRoleName(stack, 'Role', 'worker') });
    expect(refusal(imported)).toThrow('The role of Test/Worker is imported or in another stack');
  });
});

test('a role of the app that several functions share is accepted', () => {
  const { stack, mailroom } = mailroomStack();
  const role = new Role(stack, 'Role', { assumedBy: new ServicePrincipal('lambda.amazonaws.com') });
  consumer(stack, mailroom, { function: { existing: nodejsFunction(stack, 'Worker', { role }) } });
  const { Tags } = only(Template.fromStack(stack), 'AWS::IAM::Role', /^Role/).Properties;
  expect(Tags).toContainEqual({ Key: 'mailroom', Value: 'Test/Mailroom' });
});

describe('an existing function on Lambda Managed Instances', () => {
  const onInstances = (timeout: Duration, concurrency?: number) => {
    const { stack, mailroom } = mailroomStack();
    const existing = nodejsFunction(stack, 'Worker', { timeout, memorySize: 2_048 });
    const vpc = new Vpc(stack, 'Vpc', { natGateways: 0 });
    const securityGroups = [new SecurityGroup(stack, 'Instances', { vpc })];
    const provider = new CapacityProvider(stack, 'Provider', {
      subnets: vpc.isolatedSubnets,
      securityGroups,
    });
    provider.addFunction(existing, { perExecutionEnvironmentMaxConcurrency: concurrency });
    consumer(stack, mailroom, { function: { existing } });
    return stack;
  };

  test('may run for 90 minutes, after which a message is hidden for 75 more', () => {
    const template = Template.fromStack(onInstances(Duration.minutes(90), 1));
    expect(worker(template).Timeout).toBe(5_400);
    expect(only(template, 'AWS::SQS::Queue', /^ConsumerQueue/).Properties.VisibilityTimeout).toBe(9_900);
  });

  test('may not run for longer', () => {
    expect(() => onInstances(Duration.minutes(91), 1)).toThrow(
      'function.timeout is 1 hour 31 minutes, but must be from 3 seconds to 1 hour 30 minutes.',
    );
  });

  test.each([[undefined], [10]])('may not run beside other invocations (%s)', (concurrency) => {
    expect(() => Template.fromStack(onInstances(Duration.minutes(1), concurrency))).toThrow(
      'perExecutionEnvironmentMaxConcurrency of Test/Worker is',
    );
  });

  test('is refused for 16 minutes if it is on none', () => {
    const { stack, mailroom } = mailroomStack();
    const existing = nodejsFunction(stack, 'Worker', { timeout: Duration.minutes(16) });
    expect(() => consumer(stack, mailroom, { function: { existing } })).toThrow(
      'from 3 seconds to 15 minutes',
    );
  });
});
