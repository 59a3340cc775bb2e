import { Duration, type Environment, Stack } from 'aws-cdk-lib';
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions';
import { EventBus } from 'aws-cdk-lib/aws-events';
import { Key } from 'aws-cdk-lib/aws-kms';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { Queue, type QueueProps } from 'aws-cdk-lib/aws-sqs';
import { describe, expect, test } from 'vitest';
import { z } from 'zod/mini';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import { externalEvent } from '../../lambdas/runtime/events/external-event.ts';
import { subscribe } from '../../lambdas/runtime/events/subscribe.ts';
import type { ConsumerEntry } from '../../lambdas/runtime/operations/directory.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { DeliveryAlarms, InboxConsumer, type InboxConsumerProps, Mailroom } from '../../lib/index.ts';
import { deployedParts } from './access/deployed-parts.ts';
import { refusalsOf } from './refusals.ts';
import { testApp } from './synth.ts';

const schema = z.unknown();
const OrderPlaced = defineEvent({
  source: 'orders',
  type: 'OrderPlaced',
  version: 1,
  aggregateType: 'Order',
  schema,
});
const ObjectCreated = externalEvent({
  source: 'aws.s3',
  type: 'Object Created',
  schema,
  id: ['bucket.name', 'object.key'],
});
const Charged = externalEvent({ source: 'stripe', type: 'charge.succeeded', schema, id: 'id' });

/** The receives that a consumer with a visibility timeout of 3 minutes needs: see `lib/checks/receives.ts`. */
const RECEIVES = 105;

function existing(
  stack: Stack,
  {
    maxReceiveCount = RECEIVES,
    dead = {},
    ...change
  }: QueueProps & { maxReceiveCount?: number; dead?: QueueProps } = {},
): Queue {
  return new Queue(stack, 'Webhooks', {
    visibilityTimeout: Duration.minutes(3),
    retentionPeriod: Duration.days(14),
    deadLetterQueue: {
      queue: new Queue(stack, 'WebhooksDead', { retentionPeriod: Duration.days(14), ...dead }),
      maxReceiveCount,
    },
    ...change,
  });
}

const consumerProps = {
  service: 'photos',
  events: [ObjectCreated],
  entry: lambdaEntry('example/inventory/handler'),
};
type Props = (stack: Stack, mailroom: Mailroom) => Partial<InboxConsumerProps>;

function synth(props: Props, env: Environment = {}) {
  const stack = new Stack(testApp(), 'Photos', { env });
  const mailroom = new Mailroom(stack, 'Mailroom', {
    sources: ['orders'],
    heartbeat: { every: Duration.minutes(5) },
  });
  const consumer = new InboxConsumer(stack, 'Thumbnails', {
    mailroom,
    name: 'thumbnails',
    ...consumerProps,
    ...props(stack, mailroom),
  });
  new DeliveryAlarms(stack, 'Alarms', {
    mailroom,
    alarms: { page: new Topic(stack, 'Page'), ticket: new Topic(stack, 'Ticket') },
  });
  const template = Template.fromStack(stack);
  return { stack, mailroom, consumer, template, entry: entryOf(template) };
}

/** The consumer's directory entry; references in it are replaced by `?`. */
function entryOf(template: Template): ConsumerEntry {
  const [parameter] = Object.values(
    template.findResources('AWS::SSM::Parameter', {
      Properties: { Value: { 'Fn::Join': Match.anyValue() } },
    }),
  ).filter(({ Properties }) => JSON.stringify(Properties.Value).includes('thumbnails'));
  const parts: unknown[] = parameter?.Properties.Value['Fn::Join'][1];
  return JSON.parse(parts.map((part) => (typeof part === 'string' ? part : '?')).join(''));
}

const rulesOf = (template: Template) =>
  Object.entries(template.findResources('AWS::Events::Rule')).filter(([id]) => id.startsWith('Thumbnails'));
const policyOf = (template: Template, id: RegExp) =>
  Object.entries(template.findResources('AWS::SQS::QueuePolicy'))
    .filter(([name]) => id.test(name))
    .flatMap(([, { Properties }]) => Properties.PolicyDocument.Statement);
const refused = (props: Props, env?: Environment) => {
  try {
    synth(props, env);
    return 'not refused';
  } catch (error) {
    return (error as Error).message;
  }
};

describe('external events', () => {
  test('arrive on the default bus by a separate rule, and Mailroom events and heartbeats by the other', () => {
    const { template } = synth(() => ({ events: [OrderPlaced, ObjectCreated] }));
    const rules = Object.fromEntries(
      rulesOf(template).map(([id, { Properties }]) => [id.slice(0, 14), Properties]),
    );
    expect(rules).toMatchObject({
      ThumbnailsExte: { EventPattern: { source: ['aws.s3'], 'detail-type': ['Object Created'] } },
      ThumbnailsRule: {
        EventBusName: Match.anyValue() && expect.anything(),
        EventPattern: {
          $or: [
            { source: ['orders'], 'detail-type': ['OrderPlaced'] },
            { source: ['mailroom'], 'detail-type': ['Heartbeat'] },
          ],
        },
      },
    });
    expect(rules.ThumbnailsExte).not.toHaveProperty('EventBusName');
    for (const { Targets } of Object.values(rules)) {
      expect(Targets[0].Arn['Fn::GetAtt'][0]).toMatch(/^ThumbnailsQueue/);
      expect(Targets[0].DeadLetterConfig.Arn['Fn::GetAtt'][0]).toMatch(/^ThumbnailsUndelivered/);
    }
  });

  test('the policies admit exactly one rule, which is deployed after them and the function', () => {
    const { template } = synth(() => ({}));
    const [[, rule] = []] = rulesOf(template).filter(([id]) => id.includes('External'));
    expect(rule?.DependsOn).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^ThumbnailsFunction/),
        expect.stringMatching(/^ThumbnailsQueuePolicy/),
        expect.stringMatching(/^ThumbnailsUndeliveredPolicy/),
      ]),
    );
    for (const id of [/^ThumbnailsQueuePolicy/, /^ThumbnailsUndeliveredPolicy/]) {
      const [statement] = policyOf(template, id).filter(({ Sid }) => Sid === 'TheExternalRuleSends');
      const name = JSON.stringify(rule?.Properties.Name['Fn::Join'][1]).slice(1, -1);
      const arn = JSON.stringify(statement.Condition.ArnEquals['aws:SourceArn']['Fn::Join'][1]);
      expect(arn).not.toContain('*');
      expect(arn.replace(/"arn:|:rule\//g, '')).toContain(name.replace(/^"/, ''));
    }
  });

  test('a rule on another bus is admitted by the ARN that contains the bus', () => {
    const { template } = synth((stack) => ({
      externalBus: EventBus.fromEventBusName(stack, 'Partner', 'aws.partner/stripe.com/acct'),
    }));
    const [statement] = policyOf(template, /^ThumbnailsQueuePolicy/).filter(
      ({ Sid }) => Sid === 'TheExternalRuleSends',
    );
    expect(JSON.stringify(statement)).toContain(':rule/aws.partner/stripe.com/acct/');
  });

  test.each(['default', 'webhooks', 'aws.partner/stripe.com/acct'])(
    'the alarms find a rule on the bus %s by its own name, also from another stack',
    (bus) => {
      const app = testApp();
      const stack = new Stack(app, 'Service');
      const mailroom = new Mailroom(stack, 'Mailroom', { sources: ['orders'] });
      const externalBus = bus === 'default' ? undefined : EventBus.fromEventBusName(stack, 'External', bus);
      new InboxConsumer(stack, 'Thumbnails', {
        ...{ mailroom, name: 'thumbnails', ...consumerProps },
        ...(externalBus && { externalBus }),
      });
      const operations = new Stack(app, 'Operations');
      const topic = new Topic(operations, 'Topic');
      new DeliveryAlarms(operations, 'Alarms', { mailroom, alarms: { page: topic, ticket: topic } });
      const parts = deployedParts(app);
      const rule = parts.find(({ id, type }) => type === 'AWS::Events::Rule' && id.includes('External'));
      const dimensions = parts
        .filter(({ stack, type }) => stack === 'Operations' && type === 'AWS::CloudWatch::Alarm')
        .flatMap(({ properties }) => properties.Metrics ?? [])
        .flatMap(({ MetricStat }) => MetricStat?.Metric.Dimensions ?? [])
        .filter(({ Name }: { Name: string }) => Name === 'RuleName')
        .map(({ Value }: { Value: string }) => Value);
      expect(rule?.name).toContain('Thumbnails');
      expect(dimensions).toContain(rule?.name);
    },
  );

  test('the directory entry contains external events with their id fields and their rule', () => {
    const { entry } = synth(() => ({ events: [OrderPlaced, ObjectCreated] }));
    expect(entry).toMatchObject({
      events: [
        { source: 'orders', type: 'OrderPlaced' },
        { source: 'aws.s3', type: 'Object Created', external: { id: ['bucket.name', 'object.key'] } },
        { source: 'mailroom', type: 'Heartbeat' },
      ],
      externalRule: { name: expect.any(String), bus: 'default' },
    });
  });

  test('external events without an id cause a warning', () => {
    const Unnamed = externalEvent({ source: 'aws.s3', type: 'Object Deleted', schema });
    const { stack } = synth(() => ({ events: [ObjectCreated, Unnamed] }));
    const warnings = Annotations.fromStack(stack).findWarning('*', Match.stringLikeRegexp('has no id'));
    expect(warnings).toHaveLength(1);
    expect(warnings[0]?.entry.data).toContain('Object Deleted of "aws.s3"');
  });

  test('need no producer, and cause no warning about a missing one', () => {
    const { stack } = synth(() => ({}));
    Annotations.fromStack(stack).hasNoWarning('*', Match.stringLikeRegexp('would never receive'));
  });

  test('that cannot work are refused', async () => {
    const cases: Readonly<Record<string, Partial<InboxConsumerProps>>> = {
      'the reserved source': { events: [{ source: 'mailroom', type: 'x', external: {} } as never] },
      'a bad path': { events: [{ source: 's', type: 't', external: { id: ['a..b'] } } as never] },
      'a filter': { events: [subscribe(Charged, { filter: { amount: [5] } })] },
      'a rule pattern that is too long': {
        events: Array.from({ length: 20 }, (_, i) => ({ ...Charged, source: `${i}`.padStart(250, 's') })),
      },
      'the same event twice': { events: [ObjectCreated, ObjectCreated] },
      'an earlier name of their consumer': {
        events: [OrderPlaced, Charged],
        movedFrom: [{ name: 'photos', until: new Date('2026-11-21T10:00:00Z') }],
      },
    };
    await expect(refusalsOf(cases, (props) => synth(() => props))).toMatchFileSnapshot(
      '__snapshots__/refused-external-events.txt',
    );
  });

  test.each([
    ['account', 'arn:aws:events:eu-west-1:222222222222:event-bus/partner'],
    ['region', 'arn:aws:events:us-west-1:111111111111:event-bus/partner'],
  ])('a bus of another %s is refused, because the rule would be on a bus of the same name', (_, arn) => {
    const env = { account: '111111111111', region: 'eu-west-1' };
    const bus = (stack: Stack) => ({ externalBus: EventBus.fromEventBusArn(stack, 'Partner', arn) });
    expect(refused(bus, env)).toContain('externalBus is in ');
    expect(refused(bus)).toBe('not refused'); // where the stack is deployed is unknown
  });

  test('the bus of the Mailroom is refused as externalBus', () => {
    expect(refused((_, mailroom) => ({ externalBus: mailroom.bus }))).toContain(
      'externalBus is the bus of the Mailroom',
    );
  });

  test('externalBus is refused without an external event', () => {
    expect(
      refused((stack) => ({
        events: [OrderPlaced],
        externalBus: EventBus.fromEventBusName(stack, 'B', 'b'),
      })),
    ).toContain('events contains no external event');
  });
});

describe('an existing queue', () => {
  const given =
    (change: Parameters<typeof existing>[1] = {}) =>
    (stack: Stack) => ({
      events: [Charged],
      queue: { existing: existing(stack, change) },
    });

  test('the function reads an existing queue, and no rule, queue or sender policy is created', () => {
    const { template, consumer, stack } = synth(given());
    template.hasResourceProperties('AWS::Lambda::EventSourceMapping', {
      EventSourceArn: { 'Fn::GetAtt': [Match.stringLikeRegexp('^Webhooks'), 'Arn'] },
      FunctionResponseTypes: ['ReportBatchItemFailures'],
    });
    expect(rulesOf(template)).toEqual([]);
    template.hasResourceProperties('AWS::Lambda::Function', {
      Environment: { Variables: Match.objectLike({ MAILROOM_EXISTING_QUEUE: 'true' }) },
    });
    expect(
      Object.keys(template.findResources('AWS::SQS::Queue')).filter((id) => id.startsWith('Thumbnails')),
    ).toEqual([]);
    expect(policyOf(template, /^WebhooksPolicy/)).toEqual([]);
    expect(consumer.queue).toBe(stack.node.findChild('Webhooks'));
  });

  test("the sweep watches the dead-letter queue of an existing queue, and its key's policy allows that", () => {
    const { template } = synth((stack) =>
      given({ dead: { encryptionMasterKey: new Key(stack, 'Key') } })(stack),
    );
    expect(policyOf(template, /^WebhooksDead/)).toEqual([
      expect.objectContaining({
        Sid: 'TheSweepLooksAtDeadLetters',
        Action: ['sqs:GetQueueAttributes', 'sqs:ReceiveMessage'],
      }),
    ]);
    template.hasResourceProperties('AWS::KMS::Key', {
      KeyPolicy: {
        Statement: Match.arrayWith([
          Match.objectLike({
            Action: 'kms:Decrypt',
            Principal: { AWS: { 'Fn::GetAtt': [Match.stringLikeRegexp('SweepRole'), 'Arn'] } },
          }),
        ]),
      },
    });
  });

  test('the directory entry of an existing queue has no rule, undelivered queue or heartbeat', () => {
    const { entry } = synth(given());
    expect(entry.events).toEqual([{ source: 'stripe', type: 'charge.succeeded', external: { id: ['id'] } }]);
    expect(entry).not.toHaveProperty('rule');
    expect(entry).not.toHaveProperty('externalRule');
    expect(entry).not.toHaveProperty('undeliveredQueue');
  });

  test('an existing queue has alarms on its dead letters, and none on a rule', () => {
    const { template } = synth(given());
    const ids = Object.keys(template.findResources('AWS::CloudWatch::Alarm')).filter((id) =>
      /Thumbnails|thumbnails/.test(id),
    );
    expect(ids.some((id) => id.includes('DeadLetters'))).toBe(true);
    expect(ids.filter((id) => /Lost|Undelivered|RuleFailures/.test(id))).toEqual([]);
  });

  test('gives the function its visibility timeout', () => {
    const { template } = synth(given({ visibilityTimeout: Duration.minutes(5) }));
    template.hasResourceProperties('AWS::Lambda::Function', {
      Environment: { Variables: Match.objectLike({ MAILROOM_VISIBILITY_TIMEOUT_MS: '300000' }) },
    });
  });

  const REFUSED: Readonly<Record<string, Props>> = {
    'a Mailroom event': (stack) => ({ ...given()(stack), events: [OrderPlaced] }),
    'several external events': (stack) => ({ ...given()(stack), events: [Charged, ObjectCreated] }),
    'an external event without an id': (stack) => ({
      ...given()(stack),
      events: [externalEvent({ source: 's', type: 'Bare', schema })],
    }),
    'an external bus': (stack) => ({
      ...given()(stack),
      externalBus: EventBus.fromEventBusName(stack, 'B', 'b'),
    }),
    'its own retention': (stack) => {
      const { queue, events } = given()(stack);
      return { events, queue: { ...queue, retention: Duration.days(14) } };
    },
    'too few receives': given({ maxReceiveCount: 5 }),
    'no dead-letter queue': given({ deadLetterQueue: undefined as never }),
    'a short visibility timeout': given({ visibilityTimeout: Duration.seconds(5) }),
    'a short retention': given({ retentionPeriod: Duration.hours(1) }),
    'first in, first out': given({ fifo: true, dead: { fifo: true } }),
    'another consumer': (stack, mailroom) => {
      const props = given()(stack);
      new InboxConsumer(stack, 'Other', { ...consumerProps, ...props, mailroom, name: 'other' });
      return props;
    },
    'a consumer for which it was made': (stack, mailroom) => {
      const other = new InboxConsumer(stack, 'Other', { ...consumerProps, mailroom, name: 'other' });
      return { events: [Charged], queue: { existing: other.queue } };
    },
    'a dead-letter queue that has one, too': (stack) => {
      const deadLetterQueue = { queue: new Queue(stack, 'Last'), maxReceiveCount: 3 };
      return given({ dead: { deadLetterQueue } })(stack);
    },
    'a dead-letter queue that another queue has, too': (stack) => {
      const props = given()(stack);
      const deadLetterQueue = props.queue.existing.deadLetterQueue;
      new Queue(stack, 'Invoices', deadLetterQueue === undefined ? {} : { deadLetterQueue });
      return props;
    },
    'an import': (stack) => ({
      events: [Charged],
      queue: { existing: Queue.fromQueueArn(stack, 'Q', 'arn:aws:sqs:eu-west-1:123456789012:q') as Queue },
    }),
  };

  test('is refused if a consumer could lose its messages, or its alarms', async () => {
    const texts = Object.entries(REFUSED).map(([what, props]) => `# ${what}\n${refused(props)}\n`);
    await expect(texts.join('\n')).toMatchFileSnapshot('__snapshots__/refused-existing-queues.txt');
  });

  test("refusals name remedies on the queue, and an import's do not guess its settings", () => {
    const short = refused(given({ retentionPeriod: Duration.hours(1) }));
    expect(short).toContain('Raise it, or lower');
    expect(short).not.toContain('queue.retention');
    const imported = refused((stack) => ({
      events: [Charged],
      queue: { existing: Queue.fromQueueArn(stack, 'Q', 'arn:aws:sqs:eu-west-1:123456789012:q') as Queue },
    }));
    expect(imported).not.toContain('retentionPeriod');
  });
});
