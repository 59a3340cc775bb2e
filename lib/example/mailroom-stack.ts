import { CfnOutput, Stack } from 'aws-cdk-lib';
import { Key } from 'aws-cdk-lib/aws-kms';
import { Tracing } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { Mailroom } from '../mailroom.ts';
import { type Stage, stackProps } from './stage.ts';

/** The parts that all services share: the table, the relay and the bus. */
export class MailroomStack extends Stack {
  readonly mailroom: Mailroom;

  constructor(scope: Construct, id: string, stage: Stage) {
    super(scope, id, stackProps(stage));
    const { audited, removalPolicy } = stage;
    const encryptionKey = audited
      ? new Key(this, 'Key', {
          description: 'Encrypts the Mailroom.',
          enableKeyRotation: true,
          removalPolicy,
        })
      : undefined;
    this.mailroom = new Mailroom(this, 'Mailroom', {
      removalPolicy,
      encryptionKey,
      tracing: audited ? Tracing.ACTIVE : undefined,
      archive: stage.archive,
      audit: {},
      heartbeat: stage.heartbeat ? {} : undefined,
      relay: { sweepEvery: stage.sweepEvery },
    });
    new CfnOutput(this, 'TableName', { value: this.mailroom.table.tableName });
    new CfnOutput(this, 'EventBusName', { value: this.mailroom.bus.eventBusName });
  }
}
