import { App, type StackProps } from 'aws-cdk-lib';
import { ShopInvoices, ShopOrders, ShopPayments } from '../../../lib/example/shop/shop-apps.ts';
import { LOCAL_ACCOUNT, LOCAL_REGION } from '../../../localstack/workspace.ts';

// One of the apps of the shop, as `-c app=…` says; `-c suffix=…` makes a second claimant of the same names.
const app = new App();
const context = (name: string): string => app.node.tryGetContext(name) ?? '';
const props: StackProps = {
  env: { account: LOCAL_ACCOUNT, region: LOCAL_REGION },
  stackName: `shop-${context('app')}${context('suffix')}`,
};
/** The bus of a system that gets accepted orders by a forward. */
const ELSEWHERE = 'shop-elsewhere';

const stacks: Readonly<Record<string, () => void>> = {
  orders: () => new ShopOrders(app, 'Orders', { ...props, forwardTo: ELSEWHERE }),
  payments: () => new ShopPayments(app, 'Payments', props),
  elsewhere: () => new ShopPayments(app, 'Elsewhere', { ...props, ownBus: ELSEWHERE }),
  invoices: () => new ShopInvoices(app, 'Invoices', { ...props, ordersTable: context('table') }),
};
stacks[context('app')]?.();
