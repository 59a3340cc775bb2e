import { Aws, Stack, Token } from 'aws-cdk-lib';
import { AccountPrincipal, type IGrantable, PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { QueueEncryption, type QueueProps } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import { addToPolicyOf, grantTo } from '../checks/granted.ts';

const READ = ['kms:Decrypt'];

/** DynamoDB's use of a table's key on behalf of a caller who writes (DynamoDB developer guide, "Encryption at rest: usage notes"). */
const WRITE = [
  'kms:Decrypt',
  'kms:DescribeKey',
  'kms:Encrypt',
  'kms:GenerateDataKey',
  'kms:GenerateDataKeyWithoutPlaintext',
  'kms:ReEncryptFrom',
  'kms:ReEncryptTo',
];

/** Lets EventBridge use a key for this account: for a bus, its archive, and encrypted queues that its rules send to. */
export function letEventsUse(scope: Construct, key: IKey): void {
  addToPolicyOf(scope, key, key.keyArn, 'EventBridge drops events', ofEvents(scope));
}

function ofEvents(scope: Construct): PolicyStatement {
  return new PolicyStatement({
    sid: 'MailroomEvents',
    principals: [new ServicePrincipal('events.amazonaws.com')],
    // EventBridge re-encrypts an archive when it replays it (EventBridge user guide, "Encrypting archives").
    actions: ['kms:Decrypt', 'kms:DescribeKey', 'kms:GenerateDataKey', 'kms:ReEncrypt*'],
    resources: ['*'],
    conditions: { StringEquals: { 'aws:SourceAccount': Stack.of(scope).account } },
  });
}

/**
 * Lets the AWS services that hold a Mailroom's data use its key, each for this account only: EventBridge for the bus, its archive
 * and the encrypted queues that its rules send to, and CloudWatch Logs for the log groups.
 *
 * The policy of an imported key cannot be changed from this app; a warning at synth names the statements that it needs.
 *
 * @param others - more statements for its policy @default none
 */
export function letServicesUse(scope: Construct, key: IKey, others: readonly PolicyStatement[] = []): void {
  const { account, partition, region } = Stack.of(scope);
  const statements = [
    ...others,
    ofEvents(scope),
    new PolicyStatement({
      sid: 'MailroomLogs',
      principals: [new ServicePrincipal(`logs.${region}.${Aws.URL_SUFFIX}`)],
      actions: ['kms:Decrypt', 'kms:DescribeKey', 'kms:Encrypt', 'kms:GenerateDataKey*', 'kms:ReEncrypt*'],
      resources: ['*'],
      conditions: {
        ArnLike: {
          'kms:EncryptionContext:aws:logs:arn': `arn:${partition}:logs:${region}:${account}:log-group:*`,
        },
      },
    }),
  ];
  const otherwise = 'EventBridge drops events and the log groups cannot be created';
  addToPolicyOf(scope, key, key.keyArn, otherwise, ...statements, ...foreignStatements(scope, key));
}

/** A key of another account is used only by roles that its policy allows too. */
function foreignStatements(scope: Construct, { env }: IKey): PolicyStatement[] {
  const { account, region } = Stack.of(scope);
  if (Token.isUnresolved(env.account) || Token.isUnresolved(account) || env.account === account) return [];
  return [
    new PolicyStatement({
      sid: 'MailroomFunctions',
      principals: [new AccountPrincipal(account)],
      actions: WRITE,
      resources: ['*'],
      conditions: {
        StringEquals: {
          'kms:ViaService': ['dynamodb', 's3', 'sqs'].map(
            (service) => `${service}.${region}.${Aws.URL_SUFFIX}`,
          ),
        },
      },
    }),
  ];
}

/** Returns the reason why a key cannot encrypt what is in this region. */
export function keyProblems(scope: Construct, key: IKey | undefined): string[] {
  const { region } = Stack.of(scope);
  const its = key?.env.region;
  if (its === undefined || its === region || Token.isUnresolved(its) || Token.isUnresolved(region)) return [];
  return [
    `encryptionKey is a key in ${its}, but a service uses keys of its own region only, here ${region}. Pass a key in ${region}, such as a replica of a multi-Region key.`,
  ];
}

/** Lets a caller of DynamoDB read, or also write, a table encrypted with a key. DynamoDB uses the key on the caller's behalf. */
export function grantTableKey(key: IKey, grantee: IGrantable, scope: Construct, writes: boolean): void {
  grantTo(scope, {
    grantee,
    actions: writes ? WRITE : READ,
    resourceArns: [key.keyArn],
    conditions: {
      StringEquals: { 'kms:ViaService': `dynamodb.${Stack.of(scope).region}.${Aws.URL_SUFFIX}` },
    },
  });
}

/** Lets a function read messages of queues encrypted with a key. SQS uses the key on the caller's behalf. */
export function grantQueueKey(key: IKey, grantee: IGrantable, scope: Construct): void {
  grantTo(scope, {
    grantee,
    actions: READ,
    resourceArns: [key.keyArn],
    conditions: { StringEquals: { 'kms:ViaService': `sqs.${Stack.of(scope).region}.${Aws.URL_SUFFIX}` } },
  });
}

/** A queue's encryption: the given key, or SQS's own. */
export function queueEncryption(
  key: IKey | undefined,
): Pick<QueueProps, 'encryption' | 'encryptionMasterKey'> {
  if (key === undefined) return { encryption: QueueEncryption.SQS_MANAGED };
  return { encryption: QueueEncryption.KMS, encryptionMasterKey: key };
}
