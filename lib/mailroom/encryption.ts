import { Annotations, Aws, Stack } from 'aws-cdk-lib';
import { Grant, type IGrantable, PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { QueueEncryption, type QueueProps } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';

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
    new PolicyStatement({
      sid: 'MailroomEvents',
      principals: [new ServicePrincipal('events.amazonaws.com')],
      // EventBridge re-encrypts an archive when it replays it (EventBridge user guide, "Encrypting archives").
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
    'encryptionKey is imported, so this app cannot change its policy. Add these statements to the policy, or EventBridge drops events and the log groups ' +
      `cannot be created: ${JSON.stringify(Stack.of(scope).resolve(statements.map((statement) => statement.toStatementJson())))}`,
  );
}

/** Lets a caller of DynamoDB read, or also write, a table encrypted with a key. DynamoDB uses the key on the caller's behalf. */
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

/** Lets a function read messages of queues encrypted with a key. SQS uses the key on the caller's behalf. */
export function grantQueueKey(key: IKey, grantee: IGrantable, scope: Construct): void {
  Grant.addToPrincipal({
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
