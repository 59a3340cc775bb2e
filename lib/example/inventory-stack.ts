import { Stack } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import {
  OrderPlaced,
  StockRejected,
  StockReleased,
  StockReserved,
  UNPAID,
} from '../../lambdas/example/events.ts';
import { lambdaEntry } from '../functions/service-function.ts';
import { InboxConsumer } from '../inbox-consumer.ts';
import type { Mailroom } from '../mailroom.ts';
import { consumerOutputs, type Stage, stackProps } from './stage.ts';

/** Inventory: reserves the stock of every order, and releases it if the order is not paid. */
export class InventoryStack extends Stack {
  constructor(scope: Construct, id: string, stage: Stage, mailroom: Mailroom) {
    super(scope, id, stackProps(stage, 'inventory'));
    const inventory = new InboxConsumer(this, 'Inventory', {
      mailroom,
      name: 'inventory',
      service: 'inventory',
      events: [OrderPlaced, ...UNPAID],
      publishes: [StockReserved, StockRejected, StockReleased],
      entry: lambdaEntry('example/inventory/handler'),
      domainKeys: ['STOCK#*', 'RESERVATION#*'],
      ...stage.consumers,
      removalPolicy: stage.removalPolicy,
    });
    consumerOutputs(this, 'Inventory', inventory);
  }
}
