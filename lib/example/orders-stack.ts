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
import type { DatabaseEngine } from '../../lambdas/runtime/base/database-engine.ts';
import { lambdaEntry, ServiceFunction } from '../functions/service-function.ts';
import { InboxConsumer } from '../inbox-consumer.ts';
import type { Mailroom } from '../mailroom.ts';
import { consumerOutputs, type Stage, stackProps } from './stage.ts';

/** The time to pay of an order; a request may ask for less. */
const PAY_WITHIN = Duration.minutes(30);

/** A database that has the orders. */
export interface OrdersDatabase {
  readonly engine: DatabaseEngine;
  /** Its URL, with the login. */
  readonly address: string;
}

/** Orders: accepts orders over HTTP, and updates their status as the other services report. */
export class OrdersStack extends Stack {
  /** The function behind the orders API. */
  readonly api: ServiceFunction;

  /** @param database - has the orders, their outbox and the inbox of order-status; `undefined` for the table */
  constructor(scope: Construct, id: string, stage: Stage, mailroom: Mailroom, database?: OrdersDatabase) {
    super(scope, id, stackProps(stage, 'orders'));
    const folder = ['example/orders', ...(database === undefined ? [] : [database.engine])].join('/');
    const address: Readonly<Record<string, string>> =
      database === undefined ? {} : { [`MAILROOM_${database.engine.toUpperCase()}`]: database.address };

    const api = new ServiceFunction(this, 'Api', {
      entry: lambdaEntry(`${folder}/api.handler`),
      service: 'orders',
      description: 'The orders API',
      environment: { PAY_WITHIN_SECONDS: String(PAY_WITHIN.toSeconds()), ...address },
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
      function: { environment: address },
      ...stage.consumers,
      removalPolicy: stage.removalPolicy,
    });

    new CfnOutput(this, 'OrdersUrl', { value: url.url });
    consumerOutputs(this, 'OrderStatus', orderStatus);
  }
}
