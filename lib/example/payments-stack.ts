import { Duration, Stack } from 'aws-cdk-lib';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import {
  OrderExpired,
  OrderPlaced,
  PaymentCancelled,
  PaymentCaptured,
  PaymentDeclined,
  PaymentRefunded,
  PaymentRejected,
  StockRejected,
} from '../../lambdas/example/events.ts';
import { lambdaEntry } from '../functions/service-function.ts';
import { InboxConsumer } from '../inbox-consumer.ts';
import type { Mailroom } from '../mailroom.ts';
import { consumerOutputs, type Stage, stackProps } from './stage.ts';

/** Payments: charges the bank for every order, and refunds it if inventory rejects the order or it expires. */
export class PaymentsStack extends Stack {
  constructor(scope: Construct, id: string, stage: Stage, mailroom: Mailroom, bank: IFunction) {
    super(scope, id, stackProps(stage, 'payments'));
    const payments = new InboxConsumer(this, 'Payments', {
      mailroom,
      name: 'payments',
      service: 'payments',
      events: [OrderPlaced, OrderExpired, StockRejected, PaymentRejected],
      publishes: [PaymentCaptured, PaymentDeclined, PaymentRefunded, PaymentCancelled, PaymentRejected],
      entry: lambdaEntry('example/payments/handler'),
      domainKeys: ['PAYMENT#*'],
      function: { environment: { BANK_FUNCTION_NAME: bank.functionName } },
      slo: { latency: Duration.seconds(30), critical: true },
      ...stage.consumers,
      removalPolicy: stage.removalPolicy,
    });
    payments.function.addToRolePolicy(
      new PolicyStatement({ actions: ['lambda:InvokeFunction'], resources: [bank.functionArn] }),
    );
    consumerOutputs(this, 'Payments', payments);
  }
}
