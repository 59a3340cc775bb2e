import { Stack } from 'aws-cdk-lib';
import type { IEventBus, Rule } from 'aws-cdk-lib/aws-events';
import {
  AnyPrincipal,
  Effect,
  Grant,
  type IRole,
  PolicyStatement,
  ServicePrincipal,
} from 'aws-cdk-lib/aws-iam';
import type { IEventSourceDlq } from 'aws-cdk-lib/aws-lambda';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import { MAILROOM_TAG } from './tags.ts';

/** The rules that may send to a queue. */
interface RulesOf {
  /** The id of the policy statement. */
  readonly sid: string;
  /** The name of the rules in their ARN, with the bus unless it is the default one; `*` is a wildcard. */
  readonly resourceName: string;
}

/** All rules of a bus that only holds the rules of consumers. */
export function rulesOf(bus: IEventBus): RulesOf {
  return { sid: 'RulesOfTheBusSend', resourceName: `${bus.eventBusName}/*` };
}

/** One rule of a bus that holds other rules. @param bus - the name of the bus, or `default` */
export function externalRuleOf(bus: string, name: string): RulesOf {
  return { sid: 'TheExternalRuleSends', resourceName: bus === DEFAULT_BUS ? name : `${bus}/${name}` };
}

/** The name of the account's default bus. The ARNs of its rules do not contain it. */
export const DEFAULT_BUS = 'default';

/**
 * Sends a rule's events to a queue, and events that the queue did not accept to a second one. Each queue accepts messages from
 * the given rules only: with a customer managed key, the CDK's own target would admit every rule of the account.
 *
 * The rule is deployed after both policies, so they cannot refer to it: EventBridge does not retry when it lacks permission, so the
 * first events of a new consumer would be lost.
 *
 * @param fairBy - the path of the tenant in an event @default each message is its own tenant
 */
export function sendTo(rule: Rule, rules: RulesOf, queue: Queue, undelivered: Queue, fairBy?: string): void {
  rule.addTarget({
    bind: () => ({
      arn: queue.queueArn,
      targetResource: queue,
      sqsParameters: fairBy === undefined ? undefined : { messageGroupId: fairBy },
      deadLetterConfig: { arn: undelivered.queueArn },
    }),
  });
  for (const target of [queue, undelivered]) ruleSends(rule, rules, target);
}

/** Lets rules send to a queue, before the rule is deployed. */
export function ruleSends(rule: Rule, { sid, resourceName }: RulesOf, target: Queue): void {
  const sourceArn = Stack.of(target).formatArn({ service: 'events', resource: 'rule', resourceName });
  const { policyDependable } = target.addToResourcePolicy(
    new PolicyStatement({
      sid,
      principals: [new ServicePrincipal('events.amazonaws.com')],
      actions: ['sqs:SendMessage'],
      resources: [target.queueArn],
      conditions: { ArnLike: { 'aws:SourceArn': sourceArn } },
    }),
  );
  if (policyDependable) rule.node.addDependency(policyDependable);
}

/**
 * The failure destination of a function's mapping. The function may send to it and nothing else; it cannot even read the queue's
 * settings.
 */
export function failuresTo(queue: Queue): IEventSourceDlq {
  return {
    bind: (_mapping, grantee) => {
      Grant.addToPrincipal({ grantee, actions: ['sqs:SendMessage'], resourceArns: [queue.queueArn] });
      // Key permissions that SQS requires of a sender (SQS developer guide, "Key management").
      queue.encryptionMasterKey?.grant(grantee, 'kms:Decrypt', 'kms:GenerateDataKey');
      return { destination: queue.queueArn };
    },
  };
}

/**
 * Denies sending to a queue, even to senders whose own policies allow it: to every principal except the operators if the Mailroom
 * names any, otherwise to every role of its functions. AWS services are exempt: the rule, and the move task of a redrive.
 *
 * The roles are matched by tag, because a queue's policy cannot name roles of stacks that are deployed after its own.
 */
export function denySending(queue: Queue, operators: readonly IRole[] | undefined): void {
  queue.addToResourcePolicy(
    new PolicyStatement({
      sid: 'NobodyElseSends',
      effect: Effect.DENY,
      principals: [new AnyPrincipal()],
      actions: ['sqs:SendMessage'],
      resources: [queue.queueArn],
      conditions: {
        Bool: { 'aws:PrincipalIsAWSService': 'false' },
        ...(operators === undefined
          ? { Null: { [`aws:PrincipalTag/${MAILROOM_TAG}`]: 'false' } }
          : { ArnNotEquals: { 'aws:PrincipalArn': operators.map(({ roleArn }) => roleArn) } }),
      },
    }),
  );
}
