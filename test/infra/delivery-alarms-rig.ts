import { Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { expect } from 'vitest';
import type { InboxConsumerProps } from '../../lib/consumer/inbox-consumer-props.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { DeliveryAlarms, type DeliveryAlarmsProps, InboxConsumer, Mailroom } from '../../lib/index.ts';
import type { MailroomProps } from '../../lib/mailroom/mailroom-props.ts';
import { type Resource, resources, testApp } from './synth.ts';

/** Seconds, as CloudWatch counts periods. */
export const MINUTE = 60;
export const HOUR = 3_600;

/** A Mailroom with consumers and alarms, all in one stack, or each consumer in its own. */
export function alarmed(
  props: Partial<DeliveryAlarmsProps>,
  mailroomProps: MailroomProps = {},
  consumerProps: Partial<InboxConsumerProps> = {},
  names: readonly string[] = ['one'],
  apart = false,
) {
  const app = testApp();
  const stack = new Stack(app, 'Test');
  const shared = apart ? new Stack(app, 'Shared') : stack;
  const mailroom = new Mailroom(shared, 'Mailroom', mailroomProps);
  for (const name of names)
    consumer(apart ? new Stack(app, `Of-${name}`) : stack, mailroom, name, consumerProps);
  new DeliveryAlarms(stack, 'Alarms', {
    mailroom,
    alarms: { page: new Topic(stack, 'Page'), ticket: new Topic(stack, 'Ticket') },
    ...props,
  });
  return {
    app,
    stack,
    mailroom,
    get template() {
      return Template.fromStack(stack);
    },
  };
}

/** A consumer of orders. */
export function consumer(
  stack: Stack,
  mailroom: Mailroom,
  name: string,
  props: Partial<InboxConsumerProps> = {},
) {
  return new InboxConsumer(stack, name, {
    mailroom,
    name,
    service: 'orders',
    events: [{ source: 'orders', type: 'OrderPlaced' }],
    entry: lambdaEntry('example/inventory/handler'),
    ...props,
  });
}

/** The alarms of a template by their place in the construct tree, in its order. */
export function alarms(template: Template, type = 'AWS::CloudWatch::Alarm'): [string, Resource][] {
  return Object.entries(resources(template, type)).map(([id, resource]) => [shortId(id), resource]);
}

/** One alarm, or composite alarm, by its place. */
export function alarm(template: Template, id: string): Resource {
  const all = [...alarms(template), ...alarms(template, 'AWS::CloudWatch::CompositeAlarm')];
  const found = all.find(([each]) => each === id);
  if (found === undefined) throw new Error(`No alarm ${id} among ${all.map(([each]) => each).join(', ')}`);
  return found[1];
}

function shortId(logicalId: string): string {
  return logicalId.replace(/^Alarms/, '').replace(/[0-9A-F]{8}$/, '');
}

/** The alarms that a composite alarm is made of. */
export function ruleOf(composite: Resource | undefined): string[] {
  const [, parts] = composite?.Properties.AlarmRule['Fn::Join'] ?? [];
  return (parts as (string | Record<string, string[]>)[]).flatMap((part) =>
    typeof part === 'string' ? [] : [shortId(part['Fn::GetAtt']?.[0] ?? '')],
  );
}

/** A reference to a topic of the alarms. */
export function topic(id: string) {
  return { Ref: expect.stringMatching(new RegExp(`^${id}[0-9A-F]{8}$`)) };
}

/** What goes off over a threshold. */
export function over(threshold: number) {
  return { Threshold: threshold, ComparisonOperator: 'GreaterThanThreshold' };
}

/** What watches a metric. */
export function metric(namespace: string, name: string, statistic = 'Sum', period = 5 * MINUTE) {
  return { Namespace: namespace, MetricName: name, Statistic: statistic, Period: period };
}

/** The alarms that go off after a number of periods on end. */
export function times(periods: number) {
  return { DatapointsToAlarm: periods, EvaluationPeriods: periods };
}
