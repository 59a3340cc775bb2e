import { Stack } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import { OrderCancelled, PaymentCaptured } from '../../lambdas/example/events.ts';
import { lambdaEntry } from '../functions/service-function.ts';
import { InboxConsumer } from '../inbox-consumer.ts';
import type { Mailroom } from '../mailroom.ts';
import { consumerOutputs, type Stage, stackProps } from './stage.ts';

/** Notifications: sends one e-mail for every payment, and one for every cancelled order. */
export class NotificationsStack extends Stack {
  constructor(scope: Construct, id: string, stage: Stage, mailroom: Mailroom) {
    super(scope, id, stackProps(stage, 'notifications'));
    const notifications = new InboxConsumer(this, 'Notifications', {
      mailroom,
      name: 'notifications',
      service: 'notifications',
      events: [PaymentCaptured, OrderCancelled],
      entry: lambdaEntry('example/notifications/handler'),
      domainKeys: ['NOTIFICATION#*'],
      ...stage.consumers,
      removalPolicy: stage.removalPolicy,
    });
    consumerOutputs(this, 'Notifications', notifications);
  }
}
