import { Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions';
import { Key } from 'aws-cdk-lib/aws-kms';
import { Code, Function as LambdaFunction, Runtime } from 'aws-cdk-lib/aws-lambda';
import { describe, expect, test } from 'vitest';
import { OBJECT_DAYS } from '../../bench/assumptions.ts';
import { readPayloadConfig } from '../../lambdas/runtime/base/payload-config.ts';
import { subscribe } from '../../lambdas/runtime/events/subscribe.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import {
  InboxConsumer,
  type InboxConsumerProps,
  Mailroom,
  MailroomBus,
  type MailroomProps,
} from '../../lib/index.ts';
import { resources, testApp } from './synth.ts';

const reported = { source: 'reports', type: 'ReportMade' };
const payloads = { above: '200 KB' } as const;

function parts(props: MailroomProps = { payloads }, consumer: Partial<InboxConsumerProps> = {}) {
  const stack = new Stack(testApp(), 'Test');
  const mailroom = new Mailroom(stack, 'Mailroom', props);
  const producer = new LambdaFunction(stack, 'Producer', {
    runtime: Runtime.NODEJS_24_X,
    handler: 'index.handler',
    code: Code.fromInline('exports.handler = () => {}'),
  });
  mailroom.addProducer(producer, { service: 'reports', publishes: [reported] });
  const made = new InboxConsumer(stack, 'Consumer', {
    mailroom,
    name: 'archive',
    service: 'archive',
    events: [reported],
    entry: lambdaEntry('example/inventory/handler'),
    ...consumer,
  });
  return { stack, mailroom, producer, consumer: made, template: () => Template.fromStack(stack) };
}

/** The statements about S3 of the role of a function. */
function actionsOf(template: Template, role: string): string[] {
  const policies = ['AWS::IAM::Policy', 'AWS::IAM::ManagedPolicy'];
  return policies
    .flatMap((type) => Object.entries(resources(template, type)))
    .filter(([id]) => id.includes(role))
    .map(([, { Properties }]) => Properties)
    .flatMap(({ PolicyDocument }) => PolicyDocument.Statement)
    .flatMap(({ Action }) => Action)
    .filter((action) => /^(s3|kms):/.test(action))
    .sort();
}

describe('the bucket of payloads', () => {
  test('is encrypted, private, reached by TLS only, and outlasts every inbox row', () => {
    parts()
      .template()
      .hasResource('AWS::S3::Bucket', {
        DeletionPolicy: 'RetainExceptOnCreate',
        Properties: {
          BucketEncryption: {
            ServerSideEncryptionConfiguration: [
              { ServerSideEncryptionByDefault: { SSEAlgorithm: 'AES256' } },
            ],
          },
          PublicAccessBlockConfiguration: {
            BlockPublicAcls: true,
            BlockPublicPolicy: true,
            IgnorePublicAcls: true,
            RestrictPublicBuckets: true,
          },
          OwnershipControls: { Rules: [{ ObjectOwnership: 'BucketOwnerEnforced' }] },
          LifecycleConfiguration: {
            Rules: [Match.objectLike({ ExpirationInDays: OBJECT_DAYS, Status: 'Enabled' })],
          },
        },
      });
    parts()
      .template()
      .hasResourceProperties('AWS::S3::BucketPolicy', {
        PolicyDocument: {
          Statement: [
            Match.objectLike({ Effect: 'Deny', Condition: { Bool: { 'aws:SecureTransport': 'false' } } }),
          ],
        },
      });
  });

  test('does not exist without payloads', () => {
    expect(resources(parts({}).template(), 'AWS::S3::Bucket')).toEqual({});
  });

  test('is written by producers and read by consumers only', () => {
    const template = parts().template();
    expect(actionsOf(template, 'Producer')).toEqual(['s3:PutObject']);
    expect(actionsOf(template, 'Consumer')).toEqual(['s3:GetObject', 's3:ListBucket']);
    for (const other of ['Relay', 'Sweep']) expect(actionsOf(template, other)).toEqual([]);
  });

  test("uses the Mailroom's key", () => {
    const stack = new Stack(testApp(), 'Keys');
    const encryptionKey = new Key(stack, 'Key');
    new Mailroom(stack, 'Mailroom', { payloads, encryptionKey });
    Template.fromStack(stack).hasResourceProperties('AWS::S3::Bucket', {
      BucketEncryption: {
        ServerSideEncryptionConfiguration: [
          { BucketKeyEnabled: true, ServerSideEncryptionByDefault: { SSEAlgorithm: 'aws:kms' } },
        ],
      },
    });
  });

  test('is known to the functions, with the days for which an event can be scheduled', () => {
    const options = { ...payloads, lifetime: Duration.days(100), inline: [reported] };
    const { template, stack } = parts({ payloads: options }, { inboxRetention: Duration.days(60) });
    for (const [id, { Properties }] of Object.entries(resources(template(), 'AWS::Lambda::Function'))) {
      const { Variables = {} } = Properties.Environment ?? {};
      if (!/Producer|Consumer/.test(id)) {
        expect(Object.keys(Variables).filter((name) => name.includes('PAYLOADS'))).toEqual([]);
        continue;
      }
      expect(Variables.MAILROOM_PAYLOADS_BUCKET).toEqual({
        Ref: expect.stringMatching(/^MailroomPayloads/),
      });
      expect(readPayloadConfig({ ...Variables, MAILROOM_PAYLOADS_BUCKET: 'b' })).toEqual({
        bucket: 'b',
        aboveBytes: 204_800,
        aheadDays: 39,
        // The service of the consumer may have an event of that type, which is not inline.
        inline: id.includes('Producer') ? ['ReportMade'] : [],
      });
    }
    expect(stack.node.tryFindChild('Mailroom')).toBeDefined();
  });

  test('remains when its stack is deleted, which would otherwise fail because of its objects', () => {
    const stack = new Stack(testApp(), 'Disposable');
    new Mailroom(stack, 'Mailroom', { payloads, removalPolicy: RemovalPolicy.DESTROY });
    const bucket = { DeletionPolicy: 'RetainExceptOnCreate' };
    Template.fromStack(stack).hasResource('AWS::S3::Bucket', bucket);
  });

  test('with a lifetime of a day, and no consumer, takes no event that is scheduled', () => {
    const stack = new Stack(testApp(), 'Producers');
    const options = { ...payloads, lifetime: Duration.days(1) };
    const mailroom = new Mailroom(stack, 'Mailroom', { payloads: options });
    const producer = new LambdaFunction(stack, 'Producer', {
      runtime: Runtime.NODEJS_24_X,
      handler: 'index.handler',
      code: Code.fromInline('exports.handler = () => {}'),
    });
    mailroom.addProducer(producer, { service: 'reports', publishes: [reported] });
    Template.fromStack(stack).hasResourceProperties('AWS::Lambda::Function', {
      Environment: { Variables: Match.objectLike({ MAILROOM_PAYLOADS_AHEAD_DAYS: '0' }) },
    });
  });

  test('lasts longer with an archive', () => {
    const { template } = parts({ payloads, archive: Duration.days(90) });
    template().hasResourceProperties('AWS::S3::Bucket', {
      LifecycleConfiguration: { Rules: [Match.objectLike({ ExpirationInDays: 148 })] },
    });
  });
});

describe('payloads are refused', () => {
  test.each<[unknown, string]>([
    [{ above: '0 KB' }, 'above is "0 KB", but must be from "1 KB" to "384 KB"'],
    [{ above: '385 KB' }, 'larger ones would be refused before a higher threshold applies'],
    [{ above: '1 MB' }, 'above is "1 MB", but must be a size in whole KB'],
    [{ above: 200_000 }, 'above is 200000, but must be a size in whole KB'],
    [{ above: '1.5 KB' }, 'must be a size in whole KB'],
    [{}, 'above'],
    [
      { ...payloads, lifetime: Duration.hours(30) },
      'lifetime is 1 day 6 hours, but must be a whole number of days',
    ],
    [{ ...payloads, lifetime: Duration.days(3_651) }, 'must be a whole number of days from 1 to 3650'],
    [{ ...payloads, size: 1 }, 'size'],
  ])('as %j', (options, problem) => {
    expect(() => parts({ payloads: options as never })).toThrow(problem);
  });

  test('with a lifetime that the archive or an inbox outlasts', () => {
    const lifetime = Duration.days(90);
    expect(() => parts({ payloads: { ...payloads, lifetime }, archive: Duration.days(90) })).toThrow(
      'must be more than the archive, 90 days',
    );
    const inboxRetention = Duration.days(90);
    expect(() => parts({ payloads: { ...payloads, lifetime } }, { inboxRetention })).toThrow(
      'inboxRetention is 90 days, but payloads.lifetime of the Mailroom is 90 days',
    );
    expect(() =>
      parts({ payloads: { ...payloads, lifetime } }, { inboxRetention: Duration.days(89) }),
    ).not.toThrow();
  });

  test.each<[string, Partial<InboxConsumerProps>]>([
    ['with a filter', { events: [subscribe(reported, { filter: { country: ['CH'] } })] }],
    ['queue.fairBy is "$.detail.data.tenantId"', { queue: { fairBy: '$.detail.data.tenantId' } }],
  ])('by a consumer %s, unless the event is inline', (problem, consumer) => {
    expect(() => parts({ payloads }, consumer)).toThrow(problem);
    expect(() => parts({ payloads }, consumer)).toThrow('payloads.inline');
    expect(() => parts({ payloads: { ...payloads, inline: [reported] } }, consumer)).not.toThrow();
    expect(() => parts({}, consumer)).not.toThrow();
  });
});

describe('a consumer of another Mailroom on the bus', () => {
  function neighbors(consumer: Partial<InboxConsumerProps>, props: MailroomProps = { payloads }) {
    const stack = new Stack(testApp(), 'Shared');
    const bus = new MailroomBus(stack, 'Bus');
    const other = new Mailroom(stack, 'Other', { bus });
    new InboxConsumer(stack, 'Consumer', {
      mailroom: other,
      name: 'archive',
      service: 'archive',
      events: [reported],
      entry: lambdaEntry('example/inventory/handler'),
      ...consumer,
    });
    new Mailroom(stack, 'Mailroom', { ...props, bus, sources: ['reports'] });
    return stack;
  }

  test.each<[string, Partial<InboxConsumerProps>]>([
    ['with a filter', { events: [subscribe(reported, { filter: { country: ['CH'] } })] }],
    ['queue.fairBy is "$.detail.data.tenantId"', { queue: { fairBy: '$.detail.data.tenantId' } }],
  ])('%s is refused, unless the event is inline', (problem, consumer) => {
    expect(() => Template.fromStack(neighbors(consumer))).toThrow(problem);
    const inline = { ...payloads, inline: [reported] };
    expect(() => Template.fromStack(neighbors(consumer, { payloads: inline }))).not.toThrow();
    expect(() => Template.fromStack(neighbors(consumer, {}))).not.toThrow();
  });

  test('is warned of payloads that it may not read', () => {
    const text = Match.stringLikeRegexp('Shared/Mailroom keeps large payloads .* PAYLOAD_NOT_LOADED');
    const stack = neighbors({});
    expect(Annotations.fromStack(stack).findWarning('*', text)).toHaveLength(1);
    const inline = neighbors({}, { payloads: { ...payloads, inline: [reported] } });
    expect(Annotations.fromStack(inline).findWarning('*', text)).toEqual([]);
  });
});
