import type { App } from 'aws-cdk-lib';
import type { ServiceFunction } from '../functions/service-function.ts';
import type { Mailroom } from '../mailroom.ts';
import { BankStack } from './bank-stack.ts';
import { BridgeStack, readBridge } from './bridge-stack.ts';
import { InventoryStack } from './inventory-stack.ts';
import { MailroomStack } from './mailroom-stack.ts';
import { NotificationsStack } from './notifications-stack.ts';
import { OperationsStack } from './operations-stack.ts';
import { type OrdersDatabase, OrdersStack } from './orders-stack.ts';
import { PaymentsStack } from './payments-stack.ts';
import type { Stage } from './stage.ts';

/** The parts of a deployed order system that another stack of the same app may need. */
export interface OrderSystem {
  readonly mailroom: Mailroom;
  /** The function behind the orders API: a producer. */
  readonly api: ServiceFunction;
}

/**
 * The order system: one stack per service, in the order in which an order flows, one for operations, and one for the bridge that
 * the context may name: see {@link readBridge}. The orders are in PostgreSQL or MySQL if the context value `postgres` or
 * `mysql` is its address.
 *
 * @example
 * ```ts
 * orderSystem(new App(), readStage('dev', process.env));
 * ```
 */
export function orderSystem(app: App, stage: Stage): OrderSystem {
  const { mailroom } = new MailroomStack(app, 'Mailroom', stage);
  const { api } = new OrdersStack(app, 'Orders', stage, mailroom, readDatabase(app));
  const { bank } = new BankStack(app, 'Bank', stage, mailroom);
  new PaymentsStack(app, 'Payments', stage, mailroom, bank);
  new InventoryStack(app, 'Inventory', stage, mailroom);
  new NotificationsStack(app, 'Notifications', stage, mailroom);
  const bridge = readBridge(app);
  if (bridge !== undefined) new BridgeStack(app, 'Bridge', stage, mailroom, bridge);
  new OperationsStack(app, 'Operations', stage, mailroom);
  return { mailroom, api };
}

/** Its relay is a process beside the system: the demo runs it. */
function readDatabase(app: App): OrdersDatabase | undefined {
  for (const engine of ['postgres', 'mysql'] as const) {
    const address: unknown = app.node.tryGetContext(engine);
    if (address !== undefined) return { engine, address: String(address) };
  }
  return undefined;
}
