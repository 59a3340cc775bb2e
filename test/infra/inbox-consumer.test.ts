import { Duration, Stack } from 'aws-cdk-lib';
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { describe, expect, test } from 'vitest';
import { readConsumerConfig } from '../../lambdas/runtime/base/consumer-config.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { InboxConsumer, type InboxConsumerProps, Mailroom, type MailroomProps } from '../../lib/index.ts';
import { refusalsOf } from './refusals.ts';
import { type Resource, resources, synthStage, testApp } from './synth.ts';

describe('a consumer of the example', () => {
  const { templates } = synthStage('prod');
  const template = templates.Payments;

  test('the runtime can read its environment', () => {
    const { Environment, Timeout } = only(template, 'AWS::Lambda::Function').Properties;
    const variables = { ...Environment.Variables, MAILROOM_TABLE: 'table', MAILROOM_QUEUE_URL: 'url' };
    expect(Timeout).toBe(30);
    expect(readConsumerConfig(variables)).toEqual({
      service: 'payments',
      tableName: 'table',
      shards: 8,
      bornLeaseMs: 30_000,
      publishes: [
        'PaymentCaptured',
        'PaymentDeclined',
        'PaymentRefunded',
        'PaymentCancelled',
        'PaymentRejected',
      ],
      consumer: 'payments',
      queueUrl: 'url',
      leaseMs: 30_000,
      visibilityTimeoutMs: 180_000,
      maxAttempts: 10,
      retryFirstMs: 2_000,
      retryLongestMs: 900_000,
      maxReceives: 105,
      // Two queues of 14 days each, and an archive of 30.
      inboxRetentionDays: 58,
    });
  });
});

describe('defaults derived from other settings', () => {
  test('6 times the timeout hides a message, and 3 minutes at least', () => {
    const visibility = (timeout: Duration) =>
      queueOf(consumerTemplate({ function: { timeout } }), 'ConsumerQueue').VisibilityTimeout;
    expect(visibility(Duration.seconds(40))).toBe(240);
    expect(visibility(Duration.seconds(4))).toBe(180);
  });

  test('a lease never outlasts the visibility timeout', () => {
    const settings = {
      function: { timeout: Duration.seconds(4) },
      queue: { visibilityTimeout: Duration.seconds(24) },
    };
    const fn = only(
      consumerTemplate({ ...settings, retry: { outageTolerance: Duration.hours(1) } }),
      'AWS::Lambda::Function',
      /^Consumer/,
    );
    expect(fn.Properties.Environment.Variables.MAILROOM_LEASE_MS).toBe('24000');
  });

  test('the receive count follows the attempts and the outage that a message must survive', () => {
    const receives = (props: Partial<InboxConsumerProps>) =>
      queueOf(consumerTemplate(props), 'ConsumerQueue').RedrivePolicy.maxReceiveCount;
    expect(receives({ retry: { maxAttempts: 9 } })).toBe(104);
    expect(receives({ retry: { outageTolerance: Duration.minutes(0) } })).toBe(25);
    expect(receives({ retry: { outageTolerance: Duration.hours(8) } })).toBe(185);
    // The table's own outage, by backoffs of up to 15 minutes, where the visibility timeout is longer than those.
    expect(receives({ function: { timeout: Duration.minutes(15) } })).toBe(48);
  });

  test('inbox rows outlast the archive of the bus', () => {
    const days = (props: MailroomProps) => {
      const { stack, mailroom } = mailroomStack(props);
      consumer(stack, mailroom, 'Consumer');
      const fn = only(Template.fromStack(stack), 'AWS::Lambda::Function', /^Consumer/);
      return fn.Properties.Environment.Variables.MAILROOM_INBOX_RETENTION_DAYS;
    };
    expect(days({})).toBe('35');
    expect(days({ archive: Duration.days(90) })).toBe('118');
  });

  test('its directory entry may grow and shrink: it never requests a tier that a parameter cannot return from', () => {
    const events = Array.from({ length: 60 }, (_, index) => ({
      source: 'orders',
      type: `SomethingWithALongNameHappened${index}`,
    }));
    const tiers = [{}, { events }].map((props) => {
      return only(consumerTemplate(props), 'AWS::SSM::Parameter', /^ConsumerDirectoryEntry/).Properties.Tier;
    });
    expect(tiers).toEqual(['Intelligent-Tiering', 'Intelligent-Tiering']);
  });

  test('settings of Mailroom win over variables of the same name', () => {
    const environment = { MAILROOM_CONSUMER: 'somebody-else', GREETING: 'hello' };
    const fn = only(consumerTemplate({ function: { environment } }), 'AWS::Lambda::Function', /^Consumer/);
    expect(fn.Properties.Environment.Variables).toMatchObject({
      MAILROOM_CONSUMER: 'one',
      GREETING: 'hello',
    });
  });
});

test('its rule and its directory entry hold the same events: of each service only those that it subscribes to, and heartbeats', () => {
  const events = [
    { source: 'orders', type: 'OrderPlaced' },
    { source: 'payments', type: 'PaymentDeclined' },
  ];
  const template = consumerTemplate({ events });
  const rule = only(template, 'AWS::Events::Rule', /^ConsumerRule/).Properties;
  expect(rule.EventPattern).toEqual({
    $or: [
      { source: ['orders'], 'detail-type': ['OrderPlaced'] },
      { source: ['payments'], 'detail-type': ['PaymentDeclined'] },
      { source: ['mailroom'], 'detail-type': ['Heartbeat'] },
    ],
  });
  const heartbeat = { source: 'mailroom', type: 'Heartbeat' };
  const entry = only(template, 'AWS::SSM::Parameter', /^ConsumerDirectoryEntry/).Properties.Value;
  expect(JSON.stringify(entry)).toContain(
    JSON.stringify(JSON.stringify({ events: [...events, heartbeat] })).slice(2, -2),
  );
});

test.each([
  [{ latency: Duration.seconds(30) }, { latencyMs: 30_000, percentile: 99 }],
  [
    { latency: Duration.minutes(2), percentile: 99.9 },
    { latencyMs: 120_000, percentile: 99.9 },
  ],
])('its directory entry has its SLO, for the audit: %#', (slo, expected) => {
  const entry = only(consumerTemplate({ slo }), 'AWS::SSM::Parameter', /^ConsumerDirectoryEntry/).Properties
    .Value;
  expect(JSON.stringify(entry)).toContain(JSON.stringify(JSON.stringify({ slo: expected })).slice(2, -2));
});

test('an event without a declared publisher is warned of, but not one whose producer is declared later', () => {
  const { stack, mailroom } = mailroomStack({ sources: ['shop'] });
  const event = (source: string, type: string) => ({ source, type });
  consumer(stack, mailroom, 'Consumer', {
    service: 'payments',
    events: [
      event('orders', 'OrderPlaced'),
      event('orders', 'OrderPlace'),
      event('payments', 'OrderPlaced'),
      event('payments', 'PaymentCaptured'),
      event('shop', 'Anything'),
    ],
    publishes: [event('payments', 'PaymentCaptured')],
  });
  mailroom.producerEnvironment('orders', [event('orders', 'OrderPlaced')]);
  const warnings = Annotations.fromStack(stack).findWarning(
    '/Test/Consumer',
    Match.stringLikeRegexp('^events contains'),
  );
  const declared = '\\(listed: orders: OrderPlaced, payments: PaymentCaptured\\)';
  expect(warnings.map(({ entry }) => String(entry.data))).toEqual([
    expect.stringMatching(`^events contains OrderPlace of "orders", .* ${declared}`),
    expect.stringMatching(`^events contains OrderPlaced of "payments", .* ${declared}`),
  ]);
});

test('a consumer that receives its own events is warned of, but not one that receives the same type from another service', () => {
  const { stack, mailroom } = mailroomStack({ sources: ['shop'] });
  const own = { source: 'payments', type: 'PaymentCaptured' };
  consumer(stack, mailroom, 'Consumer', {
    service: 'payments',
    events: [own, { source: 'shop', type: 'PaymentDeclined' }],
    publishes: [own, { source: 'payments', type: 'PaymentDeclined' }],
  });
  const warnings = Annotations.fromStack(stack).findWarning(
    '/Test/Consumer',
    Match.stringLikeRegexp('^events and publishes'),
  );
  expect(warnings.map(({ entry }) => String(entry.data))).toEqual([
    expect.stringMatching(/^events and publishes both contain PaymentCaptured of "payments".*TOO_MANY_HOPS/),
  ]);
});

test('a consumer gathers messages for a batching window if configured', () => {
  const window = (template: Template) =>
    only(template, 'AWS::Lambda::EventSourceMapping', /^Consumer/).Properties.MaximumBatchingWindowInSeconds;
  expect(window(consumerTemplate({ queue: { batchingWindow: Duration.seconds(5) } }))).toBe(5);
  expect(window(consumerTemplate({}))).toBeUndefined();
});

describe('the events that a consumer publishes', () => {
  const captured = { source: 'payments', type: 'PaymentCaptured' };
  const rights = (template: Template) =>
    JSON.stringify(only(template, 'AWS::IAM::ManagedPolicy', /^ConsumerFunction/).Properties.PolicyDocument);
  const variables = (template: Template) =>
    only(template, 'AWS::Lambda::Function', /^Consumer/).Properties.Environment.Variables;

  test('a consumer that publishes nothing may cancel scheduled events in the outbox, but put none', () => {
    const template = consumerTemplate({ domainKeys: ['PAYMENT#*'] });
    expect(variables(template).MAILROOM_PUBLISHES).toBe('[]');
    expect(rights(template)).toContain('PAYMENT#*');
    const outbox = '"Condition":{"ForAllValues:StringLike":{"dynamodb:LeadingKeys":["OUTBOX#*"]}';
    expect(rights(template)).toContain(`"Action":"dynamodb:UpdateItem",${outbox}`);
    expect(rights(template).split('OUTBOX#')).toHaveLength(2);
  });

  test('a consumer that publishes may put events into the outbox', () => {
    const template = consumerTemplate({ service: 'payments', publishes: [captured] });
    expect(variables(template).MAILROOM_PUBLISHES).toBe('["PaymentCaptured"]');
    expect(rights(template)).toContain(
      '"Action":["dynamodb:PutItem","dynamodb:UpdateItem"],"Condition":{"ForAllValues:StringLike":{"dynamodb:LeadingKeys":["OUTBOX#*"]}',
    );
  });

  test('belong to its service, or are refused', () => {
    expect(() => consumerTemplate({ service: 'orders', publishes: [captured] })).toThrow(
      'publishes contains PaymentCaptured of "payments", but the service is "orders"',
    );
  });
});

describe('a consumer is refused', () => {
  test('a consumer is refused with settings that cannot work', async () => {
    const cases: Readonly<Record<string, Partial<InboxConsumerProps>>> = {
      'an upper-case name': { name: 'Payments' },
      'a name that would break keys': { name: 'a#b' },
      'a service of AWS': { service: 'aws.orders' },
      'a source of AWS': { events: [{ source: 'aws.s3', type: 'OrderPlaced' }] },
      'an event without a source': { events: [{ type: 'OrderPlaced' } as never] },
      'no event': { events: [] },
      'an entry that does not exist': { entry: 'src/payment.ts' },
      'a domain key of Mailroom': { domainKeys: ['INBOX#*'] },
      'more receives than SQS counts': {
        queue: { visibilityTimeout: Duration.seconds(30) },
        retry: { outageTolerance: Duration.hours(12) },
      },
    };
    await expect(refusalsOf(cases, consumerTemplate)).toMatchFileSnapshot(
      '__snapshots__/refused-consumers.txt',
    );
  });

  test('a refusal names every problem of a consumer in one message', () => {
    expect(() => consumerTemplate({ name: 'A', events: [], queue: { batchSize: 11 } })).toThrow(
      /^The consumer Test\/Consumer has invalid settings:\n- name is .*\n- events is empty.*\n- queue.batchSize is 11, /,
    );
  });

  const strangers: [string, (stack: Stack) => object, string][] = [
    [
      'a setting of a group beside it',
      () => ({ batchSize: 5 }),
      'batchSize is not a property. Use queue.batchSize.',
    ],
    ['an unknown setting', () => ({ color: 'red' }), 'color is not a property. Properties: mailroom, name, '],
    [
      'an unknown setting of a group',
      () => ({ retry: { attempts: 3 } }),
      'retry.attempts is not a property. Use retry.maxAttempts.',
    ],
    [
      'a queue in place of its settings',
      (stack) => ({ queue: new Queue(stack, 'Own') }),
      'queue is Test/Own, but takes settings. Pass it as queue.existing.',
    ],
  ];

  test.each(strangers)(
    'a consumer is refused with %s, which JavaScript can pass',
    (_what, props, message) => {
      const { stack, mailroom } = mailroomStack();
      expect(() => consumer(stack, mailroom, 'Consumer', props(stack))).toThrow(message);
    },
  );

  test('a consumer is refused if its inbox rows expire before the archive', () => {
    const { stack, mailroom } = mailroomStack({ archive: Duration.days(30) });
    expect(() => consumer(stack, mailroom, 'Consumer', { inboxRetention: Duration.days(35) })).toThrow(
      /inboxRetention is 35 days, but must be at least .* = 58 days/,
    );
  });

  test('a consumer is refused if its name is taken', () => {
    const { stack, mailroom } = mailroomStack();
    consumer(stack, mailroom, 'First');
    expect(() => consumer(stack, mailroom, 'Second')).toThrow(
      'The consumer Test/Second has invalid settings: name is "one", but Test/First already has that name: two consumers with one name',
    );
  });
});

function mailroomStack(props: MailroomProps = {}) {
  const stack = new Stack(testApp(), 'Test');
  return { stack, mailroom: new Mailroom(stack, 'Mailroom', props) };
}

function consumer(stack: Stack, mailroom: Mailroom, id: string, props: Partial<InboxConsumerProps> = {}) {
  return new InboxConsumer(stack, id, {
    mailroom,
    name: 'one',
    service: 'orders',
    events: [{ source: 'orders', type: 'OrderPlaced' }],
    entry: lambdaEntry('example/inventory/handler'),
    ...props,
  });
}

function consumerTemplate(props: Partial<InboxConsumerProps>): Template {
  const { stack, mailroom } = mailroomStack();
  consumer(stack, mailroom, 'Consumer', props);
  return Template.fromStack(stack);
}

function only(template: Template, type: string, id = /./): Resource {
  const found = Object.entries(resources(template, type)).filter(([logicalId]) => id.test(logicalId));
  const [first] = found;
  if (first === undefined || found.length > 1) throw new Error(`${found.length} resources of ${type}`);
  return first[1];
}

function queueOf(template: Template, prefix: string) {
  return only(template, 'AWS::SQS::Queue', new RegExp(`^${prefix}`)).Properties;
}

function _policyOf(template: Template, prefix: string, type = 'AWS::SQS::QueuePolicy') {
  const { Statement } = only(template, type, new RegExp(`^${prefix}`)).Properties.PolicyDocument;
  return Statement as { Effect: string; Action: string | string[]; Resource: unknown }[];
}
