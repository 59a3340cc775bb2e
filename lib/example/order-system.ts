import type { App } from 'aws-cdk-lib';
import { BankStack } from './bank-stack.ts';
import { InventoryStack } from './inventory-stack.ts';
import { MailroomStack } from './mailroom-stack.ts';
import { NotificationsStack } from './notifications-stack.ts';
import { OperationsStack } from './operations-stack.ts';
import { OrdersStack } from './orders-stack.ts';
import { PaymentsStack } from './payments-stack.ts';
import type { Stage } from './stage.ts';

/**
 * The order system: one stack per service, in the order in which an order flows, and one for operations.
 *
 * @example
 * ```ts
 * orderSystem(new App(), readStage('dev', process.env));
 * ```
 */
export function orderSystem(app: App, stage: Stage): void {
  const { mailroom } = new MailroomStack(app, 'Mailroom', stage);
  new OrdersStack(app, 'Orders', stage, mailroom);
  const { bank } = new BankStack(app, 'Bank', stage, mailroom);
  new PaymentsStack(app, 'Payments', stage, mailroom, bank);
  new InventoryStack(app, 'Inventory', stage, mailroom);
  new NotificationsStack(app, 'Notifications', stage, mailroom);
  new OperationsStack(app, 'Operations', stage, mailroom);
}
