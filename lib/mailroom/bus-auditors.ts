import { Aws, Lazy, Stack, Token } from 'aws-cdk-lib';
import type { IEventBus } from 'aws-cdk-lib/aws-events';
import { AnyPrincipal, type IPrincipal, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { ParameterValueType, StringListParameter } from 'aws-cdk-lib/aws-ssm';
import type { Construct, IConstruct } from 'constructs';
import { busAuditorsName } from '../../lambdas/runtime/operations/bus-directory.ts';
import { INBOX_PREFIX } from '../../lambdas/runtime/store/keys.ts';
import { MailroomBus } from './mailroom-bus.ts';
import { noRole } from './role-arns.ts';

/**
 * The roles of the scheduled audits that may read the Mailrooms on a bus: those that the bus's owner lists, by their ARNs. A bus of another app
 * publishes its list in Parameter Store, which is read when the stack is deployed.
 *
 * @returns a list of ARNs, in which the role "none" stands for an empty list
 */
export function auditorsOf(scope: Construct, bus: IEventBus): string[] {
  if (bus instanceof MailroomBus) return Lazy.list({ produce: () => bus._auditors() });
  if (Token.isUnresolved(bus.eventBusName)) return [noRole(scope)];
  const name = busAuditorsName(bus.eventBusName);
  return StringListParameter.valueForTypedListParameter(scope, name, ParameterValueType.STRING);
}

/**
 * The audits that may read the Mailrooms on a bus, for a policy of the given scope.
 *
 * @param scope - the owner of the policy, whose own stack reads the list: an exported one could not change while another stack imports it
 */
export function auditorsOn(scope: Construct, bus: IEventBus): IPrincipal {
  return auditorsNamed(scope, auditorsOf(scope, bus));
}

/** The principals of audits. A policy's conditions name them: as principals, roles that are deployed later would be refused. */
export function auditorsNamed(scope: IConstruct, arns: string[]): IPrincipal {
  return new AnyPrincipal().withConditions({
    StringEquals: { 'aws:PrincipalAccount': Stack.of(scope).account },
    ArnEquals: { 'aws:PrincipalArn': arns },
  });
}

/**
 * The statement of a table's policy that lets audits read inbox rows, one at a time. With `aws:PrincipalAccount`, DynamoDB does not
 * take it for a public one
 * (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/rbac-bpa-rbp.html).
 */
export function auditsReadInboxes(auditors: IPrincipal): PolicyStatement {
  return new PolicyStatement({
    sid: 'AuditsOnTheBusReadInboxRows',
    principals: [auditors],
    actions: ['dynamodb:GetItem'],
    resources: ['*'],
    conditions: {
      'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': [`${INBOX_PREFIX}*`] },
      Null: { 'dynamodb:LeadingKeys': 'false' },
    },
  });
}

/** The statement of a key's policy that lets audits read what it encrypts, through DynamoDB and SQS. */
export function auditsDecrypt(scope: IConstruct, auditors: IPrincipal): PolicyStatement {
  const via = ['dynamodb', 'sqs'].map((service) => `${service}.${Stack.of(scope).region}.${Aws.URL_SUFFIX}`);
  return new PolicyStatement({
    sid: 'AuditsOnTheBusDecrypt',
    principals: [auditors],
    actions: ['kms:Decrypt'],
    resources: ['*'],
    conditions: { StringEquals: { 'kms:ViaService': via } },
  });
}
