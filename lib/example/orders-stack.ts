import { CfnOutput, Duration, Stack } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import {
  OrderCancelled,
  OrderExpired,
  OrderPlaced,
  PaymentCancelled,
  PaymentCaptured,
  PaymentDeclined,
  PaymentRefunded,
  PaymentRejected,
  StockRejected,
  StockReleased,
  StockReserved,
} from '../../lambdas/example/events.ts';
import { lambdaEntry, ServiceFunction } from '../functions/service-function.ts';
import { InboxConsumer } from '../inbox-consumer.ts';
import type { Mailroom } from '../mailroom.ts';
import { consumerOutputs, type Stage, stackProps } from './stage.ts';

/** The time to pay of an order; a request may ask for less. */
const PAY_WITHIN = Duration.minutes(30);

/** Orders: accepts orders over HTTP, and updates their status as the other services report. */
export class OrdersStack extends Stack {
  /** The function behind the orders API. */
  readonly api: ServiceFunction;

  /** @param postgres - the address of the database that has the orders, their outbox and the inbox of order-status; `undefined` for the table */
  constructor(scope: Construct, id: string, stage: Stage, mailroom: Mailroom, postgres?: string) {
    super(scope, id, stackProps(stage, 'orders'));
    const folder = postgres === undefined ? 'example/orders' : 'example/orders/postgres';
    const database: Readonly<Record<string, string>> =
      postgres === undefined ? {} : { MAILROOM_POSTGRES: postgres };

    const api = new ServiceFunction(this, 'Api', {
      entry: lambdaEntry(`${folder}/api.handler`),
      service: 'orders',
      description: 'The orders API',
      environment: { PAY_WITHIN_SECONDS: String(PAY_WITHIN.toSeconds()), ...database },
      logRemovalPolicy: stage.removalPolicy,
      encryptionKey: mailroom.encryptionKey,
      tracing: mailroom.tracing,
    });
    mailroom.addProducer(api, {
      service: 'orders',
      publishes: [OrderPlaced, OrderExpired],
      domainKeys: ['ORDER#*', 'REQUEST#*'],
    });
    this.api = api;
    const url = api.addFunctionUrl({ authType: stage.ordersAuth });

    const orderStatus = new InboxConsumer(this, 'OrderStatus', {
      mailroom,
      name: 'order-status',
      service: 'orders',
      events: [
        PaymentCaptured,
        PaymentDeclined,
        PaymentRefunded,
        PaymentRejected,
        PaymentCancelled,
        StockReserved,
        StockRejected,
        StockReleased,
      ],
      publishes: [OrderCancelled],
      entry: lambdaEntry(`${folder}/status.handler`),
      domainKeys: ['ORDER#*'],
      function: { environment: database },
      ...stage.consumers,
      removalPolicy: stage.removalPolicy,
    });

    new CfnOutput(this, 'OrdersUrl', { value: url.url });
    consumerOutputs(this, 'OrderStatus', orderStatus);
  }
}
