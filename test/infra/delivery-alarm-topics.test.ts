import { describe, expect, test } from 'vitest';
import { alarm, alarms, HOUR, metric, over } from './delivery-alarms-rig.ts';
import { resources, synthStage } from './synth.ts';

describe('the topics', () => {
  const template = synthStage('prod').templates.Operations;

  test('take messages from alarms of this account, and over TLS only', () => {
    for (const { Properties } of Object.values(resources(template, 'AWS::SNS::TopicPolicy'))) {
      const [deny, allow] = Properties.PolicyDocument.Statement;
      expect(deny).toMatchObject({ Effect: 'Deny', Condition: { Bool: { 'aws:SecureTransport': 'false' } } });
      expect(allow).toMatchObject({
        Effect: 'Allow',
        Action: 'sns:Publish',
        Principal: { Service: 'cloudwatch.amazonaws.com' },
      });
      expect(JSON.stringify(allow.Condition.ArnLike['aws:SourceArn'])).toContain(':alarm:*');
    }
  });

  test('topics are encrypted with a key that CloudWatch may use', () => {
    const topics = Object.values(resources(template, 'AWS::SNS::Topic'));
    expect(topics).toHaveLength(2);
    for (const { Properties } of topics) {
      expect(Properties.KmsMasterKeyId).toEqual({ 'Fn::GetAtt': [expect.stringMatching(/^Key/), 'Arn'] });
    }
    const [key] = Object.values(resources(template, 'AWS::KMS::Key'));
    expect(key?.Properties.EnableKeyRotation).toBe(true);
    expect(key?.Properties.KeyPolicy.Statement).toContainEqual(
      expect.objectContaining({
        Action: ['kms:Decrypt', 'kms:GenerateDataKey*'],
        Principal: { Service: 'cloudwatch.amazonaws.com' },
      }),
    );
  });

  test('topics have no subscriber unless the context names one', () => {
    expect(Object.keys(resources(template, 'AWS::SNS::Subscription'))).toEqual([]);
    const named = synthStage('prod', { pageEmail: 'oncall@example.com', ticketEmail: 'team@example.com' });
    const subscriptions = Object.values(resources(named.templates.Operations, 'AWS::SNS::Subscription'));
    expect(subscriptions.map(({ Properties }) => [Properties.Protocol, Properties.Endpoint])).toEqual([
      ['email', 'oncall@example.com'],
      ['email', 'team@example.com'],
    ]);
  });
});

describe('where there are no composite alarms', () => {
  const template = synthStage('local').templates.Operations;

  test('no alarm is created that such an engine refuses', () => {
    expect(alarms(template).filter(([, { Properties }]) => Properties.Metrics !== undefined)).toEqual([]);
    expect(alarms(template).filter(([id]) => /(Stalled|Failing)$/.test(id))).toEqual([]);
  });

  test('dead letters that pile up are counted by the consumer that rejects them', () => {
    expect(alarm(template, 'paymentsDeadLettersGrow').Properties).toMatchObject({
      ...over(10),
      ...metric('Mailroom', 'MessagesRejected', 'Sum', HOUR),
    });
  });

  test('each page pages, an SLO over its long window, and no alarm is without an action', () => {
    expect(alarms(template, 'AWS::CloudWatch::CompositeAlarm')).toEqual([]);
    const paging = alarms(template).filter(([, { Properties }]) =>
      /^Page/.test(Properties.AlarmActions?.[0].Ref),
    );
    expect(paging.map(([id]) => id)).toContain('paymentsSlowForLong');
    expect(paging).toHaveLength(13);
    const silent = alarms(template).filter(([, { Properties }]) => Properties.AlarmActions === undefined);
    expect(silent.map(([id]) => id)).toEqual([]);
  });
});
