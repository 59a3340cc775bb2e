import { Aws, Stack } from 'aws-cdk-lib';
import { AnyPrincipal, type IPrincipal, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { IConstruct } from 'constructs';
import { INBOX_PREFIX } from '../../lambdas/runtime/store/keys.ts';
import { AUDITOR_TAG } from './tags.ts';

/**
 * The scheduled audits of all Mailrooms on a bus, in this account. Their roles are found by a tag, so that a Mailroom which joins later
 * is included without a deployment of the others.
 */
export function auditorsOn(scope: IConstruct, busName: string): IPrincipal {
  return new AnyPrincipal().withConditions({
    StringEquals: {
      'aws:PrincipalAccount': Stack.of(scope).account,
      [`aws:PrincipalTag/${AUDITOR_TAG}`]: busName,
    },
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
