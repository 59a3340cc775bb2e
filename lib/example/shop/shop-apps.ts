import { CfnOutput, RemovalPolicy, Stack, type StackProps } from 'aws-cdk-lib';
import { EventBus } from 'aws-cdk-lib/aws-events';
import type { Construct } from 'constructs';
import { InvoiceIssued, OrderAccepted, OrderPaid } from '../../../lambdas/example/shop/catalog.ts';
import { lambdaEntry } from '../../functions/service-function.ts';
import { InboxConsumer, Mailroom, MailroomBus, ServiceFunction } from '../../index.ts';

// A second example: three apps, each deployed by its own pipeline. Two have a Mailroom, and all meet on one bus.

/** The name by which the apps find the bus. */
const BUS = 'shop';

/** The role of the forward of accepted orders, by which the other bus accepts it. */
const FORWARD_ROLE = 'shop-forwards-orders';

/** The data of the shop is disposable. */
const removalPolicy = RemovalPolicy.DESTROY;

/** Properties of the app of the orders. */
export interface ShopOrdersProps extends StackProps {
  /** The name of another bus of this account, to which accepted orders are forwarded. @default none */
  readonly forwardTo?: string;
}

/** The app of the orders: the bus, a Mailroom, and a consumer of events of both other apps. */
export class ShopOrders extends Stack {
  constructor(scope: Construct, id: string, { forwardTo, ...props }: ShopOrdersProps = {}) {
    super(scope, id, props);
    const bus = new MailroomBus(this, 'Bus', { eventBusName: BUS, removalPolicy });
    if (forwardTo !== undefined)
      bus.forwardTo(EventBus.fromEventBusName(this, 'Other', forwardTo), {
        from: OrderAccepted.source,
        events: [OrderAccepted],
        roleName: FORWARD_ROLE,
      });
    // The app of the invoices attaches to this Mailroom and publishes through it.
    const mailroom = new Mailroom(this, 'Mailroom', { bus, sources: [InvoiceIssued.source], removalPolicy });
    const accept = new ServiceFunction(this, 'Accept', {
      entry: lambdaEntry('example/shop/accept.handler'),
      service: OrderAccepted.source,
      logRemovalPolicy: removalPolicy,
    });
    mailroom.addProducer(accept, { service: OrderAccepted.source, publishes: [OrderAccepted] });
    new InboxConsumer(this, 'History', {
      mailroom,
      name: 'history',
      service: OrderAccepted.source,
      events: [OrderPaid, InvoiceIssued],
      entry: lambdaEntry('example/shop/history.handler'),
      domainKeys: ['HISTORY#*'],
      removalPolicy,
    });
    new CfnOutput(this, 'AcceptFunction', { value: accept.functionName });
    new CfnOutput(this, 'OrdersTable', { value: mailroom.table.tableName });
  }
}

/** Properties of the app of the payments. */
export interface ShopPaymentsProps extends StackProps {
  /** The name of its own bus, to which the orders are forwarded. @default it joins the bus of the orders */
  readonly ownBus?: string;
}

/** The app of the payments: its own Mailroom, on the bus of the orders. */
export class ShopPayments extends Stack {
  constructor(scope: Construct, id: string, { ownBus, ...props }: ShopPaymentsProps = {}) {
    super(scope, id, props);
    const bus =
      ownBus === undefined ? EventBus.fromEventBusName(this, 'Bus', BUS) : acceptingBus(this, ownBus);
    const mailroom = new Mailroom(this, 'Mailroom', { bus, removalPolicy });
    new InboxConsumer(this, 'Payments', {
      mailroom,
      name: 'payments',
      service: OrderPaid.source,
      events: [OrderAccepted],
      publishes: [OrderPaid],
      entry: lambdaEntry('example/shop/payments.handler'),
      domainKeys: ['PAYMENT#*'],
      removalPolicy,
    });
    new CfnOutput(this, 'PaymentsTable', { value: mailroom.table.tableName });
  }
}

/** A bus that accepts what the app of the orders forwards. */
function acceptingBus(scope: Construct, eventBusName: string): MailroomBus {
  const bus = new MailroomBus(scope, 'Bus', { eventBusName, removalPolicy });
  bus.acceptFrom({ role: FORWARD_ROLE, from: OrderAccepted.source, events: [OrderAccepted] });
  return bus;
}

/** Properties of the app that attaches to a Mailroom. */
export interface ShopInvoicesProps extends StackProps {
  /** The output `OrdersTable` of the app of the orders. */
  readonly ordersTable: string;
}

/** The app of the invoices: a consumer without its own Mailroom, attached to that of the orders. */
export class ShopInvoices extends Stack {
  constructor(scope: Construct, id: string, { ordersTable, ...props }: ShopInvoicesProps) {
    super(scope, id, props);
    new InboxConsumer(this, 'Invoices', {
      mailroom: Mailroom.fromTableName(this, 'Mailroom', ordersTable),
      name: 'invoices',
      service: InvoiceIssued.source,
      events: [OrderPaid],
      publishes: [InvoiceIssued],
      entry: lambdaEntry('example/shop/invoices.handler'),
      domainKeys: ['INVOICE#*'],
      removalPolicy,
    });
  }
}
