import { CfnOutput, Stack } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import { Mailroom } from '../mailroom.ts';
import { type Stage, stackProps } from './stage.ts';

/** What all services share: the table, the relay and the bus. */
export class MailroomStack extends Stack {
  readonly mailroom: Mailroom;

  constructor(scope: Construct, id: string, stage: Stage) {
    super(scope, id, stackProps(stage));
    this.mailroom = new Mailroom(this, 'Mailroom', {
      removalPolicy: stage.removalPolicy,
      archive: stage.archive,
      audit: {},
      relay: { sweepEvery: stage.sweepEvery },
    });
    new CfnOutput(this, 'TableName', { value: this.mailroom.table.tableName });
    new CfnOutput(this, 'EventBusName', { value: this.mailroom.bus.eventBusName });
  }
}
