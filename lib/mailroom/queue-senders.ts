import { createHash } from 'node:crypto';
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
import { type Queue, type QueueProps, RedrivePermission } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { MAILROOM_TAG } from '../../lambdas/runtime/base/resource-tags.ts';
import { physicalName } from '../functions/physical-name.ts';
import { keyOf } from './bus-identity.ts';

/** The longest name of a rule (EventBridge API reference, PutRule). */
const RULE_NAME_MAX = 64;

/** The one rule that may send to a queue: not every rule of its bus, because any team may add one there, with its own message. */
interface SendingRule {
  /** The id of the policy statement. */
  readonly sid: string;
  /** The name of its bus, or `default`. */
  readonly bus: string;
  /** Its fixed name. */
  readonly name: string;
}

/**
 * Keeps every other queue from making this one its dead-letter queue. SQS moves messages there whatever the policy of this queue is, and by
 * default, any queue of the account and region may (SQS API reference, CreateQueue, RedriveAllowPolicy).
 */
export const DEAD_LETTERS_OF_NONE = {
  redriveAllowPolicy: { redrivePermission: RedrivePermission.DENY_ALL },
} as const satisfies QueueProps;

/**
 * The fixed name of a rule. It changes with the bus, because CloudFormation replaces a rule that moves to another bus, but no resource
 * with a fixed name (CloudFormation template reference, "Name type").
 *
 * @param bus - as far as synth knows it @default the default bus
 */
export function fixedRuleName(owner: Construct, kind: string, bus?: IEventBus): string {
  const on = createHash('sha256').update(bus === undefined ? DEFAULT_BUS : keyOf(bus));
  const id = `${kind}${on.digest('hex').slice(0, 8)}`;
  return physicalName(owner.node.tryFindChild(id) ?? new Construct(owner, id), RULE_NAME_MAX);
}

/** The name of the account's default bus. The ARNs of its rules do not contain it. */
export const DEFAULT_BUS = 'default';

/**
 * Sends a rule's events to a queue, and events that the queue did not accept to a second one. Each queue accepts messages from
 * that rule only: with a customer managed key, the CDK's own target would admit every rule of the account.
 *
 * @param fairBy - the path of the tenant in an event @default each message is its own tenant
 */
export function sendTo(
  rule: Rule,
  sending: SendingRule,
  queue: Queue,
  undelivered: Queue,
  fairBy?: string,
): void {
  rule.addTarget({
    bind: () => ({
      arn: queue.queueArn,
      targetResource: queue,
      sqsParameters: fairBy === undefined ? undefined : { messageGroupId: fairBy },
      deadLetterConfig: { arn: undelivered.queueArn },
    }),
  });
  for (const target of [queue, undelivered]) ruleSends(rule, sending, target);
}

/**
 * Lets a rule send to a queue. The rule is deployed after the policy, which therefore names it without a reference: EventBridge does not
 * retry when it lacks permission, so the first events of a new consumer would be lost.
 */
export function ruleSends(rule: Rule, { sid, bus, name }: SendingRule, target: Queue): void {
  const resourceName = bus === DEFAULT_BUS ? name : `${bus}/${name}`;
  const sourceArn = Stack.of(target).formatArn({ service: 'events', resource: 'rule', resourceName });
  const { policyDependable } = target.addToResourcePolicy(
    new PolicyStatement({
      sid,
      principals: [new ServicePrincipal('events.amazonaws.com')],
      actions: ['sqs:SendMessage'],
      resources: [target.queueArn],
      conditions: { ArnEquals: { 'aws:SourceArn': sourceArn } },
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
 * Denies sending to a queue, even to senders whose own policies allow it: to every principal except the operators if they are known, otherwise to every role of its functions. AWS services are exempt: the rule, and the move task of a redrive.
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
        ...(operators === undefined && { Null: { [`aws:PrincipalTag/${MAILROOM_TAG}`]: 'false' } }),
        ...(operators?.length && {
          ArnNotEquals: { 'aws:PrincipalArn': operators.map(({ roleArn }) => roleArn) },
        }),
      },
    }),
  );
}
