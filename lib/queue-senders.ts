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

/**
 * Makes a rule send its events to a queue, and to a second one what the first did not take. Each queue lets the rules of the bus send, and no
 * other: with a key of one's own, the target that the CDK has would let in every rule of the account.
 *
 * The rule is deployed after both policies, so they cannot name it: EventBridge does not try again where it has no right, so the first
 * events of a new consumer would be lost.
 */
export function sendTo(rule: Rule, bus: IEventBus, queue: Queue, undelivered: Queue): void {
  const ofBus = Stack.of(queue).formatArn({
    service: 'events',
    resource: 'rule',
    resourceName: `${bus.eventBusName}/*`,
  });
  rule.addTarget({
    bind: () => ({
      arn: queue.queueArn,
      targetResource: queue,
      deadLetterConfig: { arn: undelivered.queueArn },
    }),
  });
  for (const target of [queue, undelivered]) {
    const { policyDependable } = target.addToResourcePolicy(
      new PolicyStatement({
        sid: 'RulesOfTheBusSend',
        principals: [new ServicePrincipal('events.amazonaws.com')],
        actions: ['sqs:SendMessage'],
        resources: [target.queueArn],
        conditions: { ArnLike: { 'aws:SourceArn': ofBus } },
      }),
    );
    if (policyDependable) rule.node.addDependency(policyDependable);
  }
}

/** Where the mapping of a function leaves what failed. The function may send there, and no more: not even read the queue's settings. */
export function failuresTo(queue: Queue): IEventSourceDlq {
  return {
    bind: (_mapping, grantee) => {
      Grant.addToPrincipal({ grantee, actions: ['sqs:SendMessage'], resourceArns: [queue.queueArn] });
      // What SQS needs of a sender (SQS developer guide, "Key management").
      queue.encryptionMasterKey?.grant(grantee, 'kms:Decrypt', 'kms:GenerateDataKey');
      return { destination: queue.queueArn };
    },
  };
}

/**
 * Denies sending to a queue, whatever a sender's own policies allow: to every principal except the operators where the Mailroom names them,
 * otherwise to every role of its functions. AWS services are excepted: the rule, and the move task of a redrive.
 *
 * The roles are recognized by their tag: a queue's policy cannot name the roles of stacks that are deployed after its own.
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
