import { CfnOutput, Stack, Validations } from 'aws-cdk-lib';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Key } from 'aws-cdk-lib/aws-kms';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import type { Construct } from 'constructs';
import { DeliveryAlarms } from '../delivery-alarms.ts';
import type { Mailroom } from '../mailroom.ts';
import { type Stage, stackProps } from './stage.ts';

/**
 * SNS retries an e-mail 50 times over more than six hours ("Message delivery retries", SNS Developer Guide). A dead-letter queue would
 * add a key policy and an alarm that notifies the same topics, and a notification that old is not worth redriving.
 */
const NO_EMAIL_QUEUE = {
  id: 'Serverless-SNSRedrivePolicy',
  reason:
    'An e-mail that SNS could not deliver in six hours of retries is too late to act on; CloudWatch keeps the state and history of its alarm.',
};

/**
 * Operations: the alarms of all services, the dashboard and the topics. `-c pageEmail=…` and `-c ticketEmail=…` subscribe an
 * address to each topic.
 */
export class OperationsStack extends Stack {
  constructor(scope: Construct, id: string, stage: Stage, mailroom: Mailroom) {
    super(scope, id, stackProps(stage, 'operations'));
    const key = this.alarmKey(stage);
    const page = this.topic('Page', key, 'pageEmail');
    const ticket = this.topic('Ticket', key, 'ticketEmail');
    const { dashboard } = new DeliveryAlarms(this, 'Alarms', {
      mailroom,
      alarms: { page, ticket },
      composite: stage.compositeAlarms,
    });
    new CfnOutput(this, 'PageTopicArn', { value: page.topicArn });
    new CfnOutput(this, 'TicketTopicArn', { value: ticket.topicArn });
    if (dashboard) new CfnOutput(this, 'DashboardName', { value: dashboard.dashboardName });
  }

  private topic(id: string, masterKey: Key, context: string): Topic {
    const topic = new Topic(this, id, { masterKey, enforceSSL: true });
    const email: unknown = this.node.tryGetContext(context);
    if (typeof email === 'string')
      Validations.of(topic.addSubscription(new EmailSubscription(email))).acknowledge(NO_EMAIL_QUEUE);
    return topic;
  }

  /**
   * CloudWatch may not use the key that AWS manages for SNS: its alarms would fail silently. The topics' policies limit which
   * alarms may publish, and the key's policy limits CloudWatch to the alarms of this account and region.
   */
  private alarmKey(stage: Stage): Key {
    const key = new Key(this, 'Key', {
      description: 'Encrypts the notifications of the Mailroom alarms.',
      enableKeyRotation: true,
      removalPolicy: stage.removalPolicy,
    });
    key.addToResourcePolicy(
      new PolicyStatement({
        sid: 'AlarmsPublish',
        principals: [new ServicePrincipal('cloudwatch.amazonaws.com')],
        actions: ['kms:Decrypt', 'kms:GenerateDataKey*'],
        resources: ['*'],
        conditions: {
          StringEquals: { 'aws:SourceAccount': this.account },
          ArnLike: {
            'aws:SourceArn': `arn:${this.partition}:cloudwatch:${this.region}:${this.account}:alarm:*`,
          },
        },
      }),
    );
    return key;
  }
}
