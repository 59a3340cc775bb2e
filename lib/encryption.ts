import { Annotations, Aws, Stack } from 'aws-cdk-lib';
import { Grant, type IGrantable, PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { QueueEncryption, type QueueProps } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';

const READ = ['kms:Decrypt'];

/** What DynamoDB does with a table's key for a caller who writes (DynamoDB developer guide, "Encryption at rest: usage notes"). */
const WRITE = [
  'kms:Decrypt',
  'kms:DescribeKey',
  'kms:Encrypt',
  'kms:GenerateDataKey',
  'kms:GenerateDataKeyWithoutPlaintext',
  'kms:ReEncryptFrom',
  'kms:ReEncryptTo',
];

/**
 * Lets the AWS services that hold a Mailroom's data use its key: EventBridge for the bus, its archive and the encrypted queues that its
 * rules send to, and CloudWatch Logs for the log groups, each for this account only.
 *
 * The policy of an imported key cannot be changed from here. A warning at synth names the statements that it needs.
 */
export function letServicesUse(scope: Construct, key: IKey): void {
  const { account, partition, region } = Stack.of(scope);
  const statements = [
    new PolicyStatement({
      sid: 'MailroomEvents',
      principals: [new ServicePrincipal('events.amazonaws.com')],
      // An archive is encrypted again when it is replayed (EventBridge user guide, "Encrypting archives").
      actions: ['kms:Decrypt', 'kms:DescribeKey', 'kms:GenerateDataKey', 'kms:ReEncrypt*'],
      resources: ['*'],
      conditions: { StringEquals: { 'aws:SourceAccount': account } },
    }),
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
  const added = statements.map((statement) => key.addToResourcePolicy(statement).statementAdded);
  if (added.every(Boolean)) return;
  Annotations.of(scope).addWarningV2(
    'cdk-mailroom:importedKey',
    'encryptionKey is imported, so its policy cannot be changed from here. Add these statements to it, or EventBridge drops events and the log groups ' +
      `cannot be created: ${JSON.stringify(Stack.of(scope).resolve(statements.map((statement) => statement.toStatementJson())))}`,
  );
}

/** Lets a caller of DynamoDB read, or write as well, a table under a key. DynamoDB uses the key in the caller's name. */
export function grantTableKey(key: IKey, grantee: IGrantable, scope: Construct, writes: boolean): void {
  Grant.addToPrincipal({
    grantee,
    actions: writes ? WRITE : READ,
    resourceArns: [key.keyArn],
    conditions: {
      StringEquals: { 'kms:ViaService': `dynamodb.${Stack.of(scope).region}.${Aws.URL_SUFFIX}` },
    },
  });
}

/** Lets a function read messages of queues under a key. SQS uses the key in the caller's name. */
export function grantQueueKey(key: IKey, grantee: IGrantable, scope: Construct): void {
  Grant.addToPrincipal({
    grantee,
    actions: READ,
    resourceArns: [key.keyArn],
    conditions: { StringEquals: { 'kms:ViaService': `sqs.${Stack.of(scope).region}.${Aws.URL_SUFFIX}` } },
  });
}

/** How a queue is encrypted: with a key of one's own where there is one. */
export function queueEncryption(
  key: IKey | undefined,
): Pick<QueueProps, 'encryption' | 'encryptionMasterKey'> {
  if (key === undefined) return { encryption: QueueEncryption.SQS_MANAGED };
  return { encryption: QueueEncryption.KMS, encryptionMasterKey: key };
}
