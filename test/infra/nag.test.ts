import { Validations } from 'aws-cdk-lib';
import { AwsSolutionsChecks } from 'cdk-nag';
import type { IConstruct } from 'constructs';
import { describe, expect, test } from 'vitest';
import { synthStage } from './synth.ts';

describe('cdk-nag (AwsSolutions)', () => {
  test.each(['local', 'dev', 'prod'] as const)('finds nothing unexplained in %s', (stage) => {
    const { app } = synthStage(stage);
    const { violations } = new AwsSolutionsChecks(app).validateScope(app);
    expect(violations).toEqual([]);
  });

  test('is told to overlook only queues that are dead-letter queues themselves, and what the audit reads', () => {
    const overlooked = synthStage('prod')
      .app.node.findAll()
      .flatMap((construct) => acknowledged(construct).map((rule) => `${construct.node.path}: ${rule}`));
    expect(overlooked.sort()).toEqual([
      'Inventory/Inventory/Undelivered: Annotation::AwsSolutions-SQS3',
      'Mailroom/Mailroom/Audit: Annotation::AwsSolutions-IAM5[Resource::*]',
      expect.stringMatching(
        /^Mailroom\/Mailroom\/Audit: Annotation::AwsSolutions-IAM5\[Resource::arn:<AWS::Partition>:events:<AWS::Region>:<AWS::AccountId>:rule\/<MailroomBus\w+>\/\*\]$/,
      ),
      expect.stringMatching(
        /^Mailroom\/Mailroom\/Audit: Annotation::AwsSolutions-IAM5\[Resource::arn:<AWS::Partition>:ssm:<AWS::Region>:<AWS::AccountId>:parameter\/mailroom\/<MailroomTable\w+>\/consumers\/\*\]$/,
      ),
      'Mailroom/Mailroom/Relay/Failures: Annotation::AwsSolutions-SQS3',
      'Notifications/Notifications/Undelivered: Annotation::AwsSolutions-SQS3',
      'Orders/OrderStatus/Undelivered: Annotation::AwsSolutions-SQS3',
      'Payments/Payments/Undelivered: Annotation::AwsSolutions-SQS3',
    ]);
  });
});

function acknowledged(construct: IConstruct): string[] {
  return construct.node.metadata
    .filter(({ type }) => type === Validations.ACKNOWLEDGED_RULES_METADATA_KEY)
    .flatMap(({ data }) => Object.keys(data));
}
