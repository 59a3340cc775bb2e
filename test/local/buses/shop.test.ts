import '../../../localstack/quiet-sdk.ts';
import { randomUUID } from 'node:crypto';
import { DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import {
  DescribeEventBusCommand,
  DisableRuleCommand,
  EventBridgeClient,
  ListRulesCommand,
} from '@aws-sdk/client-eventbridge';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { ListQueuesCommand, SQSClient } from '@aws-sdk/client-sqs';
import { SSMClient } from '@aws-sdk/client-ssm';
import { DynamoDBDocumentClient, GetCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readDirectory } from '../../../lambdas/runtime/operations/ssm-directory.ts';
import type { Outputs } from '../../../localstack/cdk-process.ts';
import { deployLocal } from '../../../localstack/deploy.ts';
import { type Engine, startEngine } from '../../../localstack/engine.ts';
import { freePort } from '../../../localstack/free-port.ts';
import { LOCAL_REGION, projectRoot } from '../../../localstack/workspace.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { awsLines, runAwsLine } from '../support/aws-line.ts';
import { eventually } from '../support/eventually.ts';
import { mailroomAt } from '../support/mailroom.ts';

let engine: Engine;
let outputs: Outputs;

const settings = () => ({
  endpoint: engine.endpoint,
  region: LOCAL_REGION,
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
});

/** Deploys one of the apps, as its own pipeline would. */
const deploy = (context: Record<string, string>): Promise<Outputs> =>
  deployLocal({ endpoint: engine.endpoint, appDir: `${projectRoot}/test/local/buses`, context });

/** Everything that a deployment which failed at its start must not have made. */
async function made(): Promise<object> {
  const { TableNames } = await new DynamoDBClient(settings()).send(new ListTablesCommand({}));
  const { QueueUrls } = await new SQSClient(settings()).send(new ListQueuesCommand({}));
  return { TableNames, QueueUrls };
}

beforeAll(async () => {
  engine = await startEngine({ env: {}, port: await freePort() });
  const { PaymentsTable: ElsewhereTable = '' } = await deploy({ app: 'elsewhere' });
  const orders = await deploy({ app: 'orders' });
  const payments = await deploy({ app: 'payments' });
  outputs = { ...orders, ...payments, ElsewhereTable };
  await deploy({ app: 'invoices', table: outputs.OrdersTable ?? '' });
});

afterAll(() => engine?.stop());

test('an event passes from one Mailroom to another, by a forward to another bus, and on to an attached consumer, which publishes, too', async () => {
  const orders = Array.from({ length: 5 }, () => ({ orderId: randomUUID(), totalCents: 450 }));
  const lambda = new LambdaClient(settings());
  for (const order of orders) {
    const invoke = { FunctionName: outputs.AcceptFunction, Payload: JSON.stringify(order) };
    expect((await lambda.send(new InvokeCommand(invoke))).FunctionError).toBeUndefined();
  }
  const documents = DynamoDBDocumentClient.from(new DynamoDBClient(settings()));
  const row = async (TableName: string | undefined, PK: string, SK: string) =>
    (await documents.send(new GetCommand({ TableName, Key: { PK, SK }, ConsistentRead: true }))).Item;
  for (const { orderId, totalCents } of orders) {
    await eventually(async () => {
      const { OrdersTable, PaymentsTable, ElsewhereTable } = outputs;
      for (const table of [PaymentsTable, ElsewhereTable])
        expect(await row(table, `PAYMENT#${orderId}`, 'PAYMENT')).toMatchObject({ totalCents });
      expect(await row(OrdersTable, `INVOICE#${orderId}`, 'INVOICE')).toMatchObject({ totalCents });
      expect(await row(OrdersTable, `HISTORY#${orderId}`, 'PAID')).toBeDefined();
      expect(await row(OrdersTable, `HISTORY#${orderId}`, 'INVOICED')).toBeDefined();
    });
  }
});

describe('an order that did not arrive', () => {
  const at = (stack: string, ...argv: string[]) =>
    mailroomAt(engine.endpoint, ...argv, '--stack', stack, '--region', LOCAL_REGION);

  /** Disables a rule of the shop's bus, and accepts an order. @returns its id */
  async function orderWithout(rule: RegExp): Promise<string> {
    const events = new EventBridgeClient(settings());
    const { Rules = [] } = await events.send(new ListRulesCommand({ EventBusName: 'shop' }));
    const [{ Name } = {}, ...others] = Rules.filter((found) => rule.test(found.Name ?? ''));
    expect(others).toEqual([]);
    await events.send(new DisableRuleCommand({ Name, EventBusName: 'shop' }));
    const order = { orderId: randomUUID(), totalCents: 450 };
    const invoke = { FunctionName: outputs.AcceptFunction, Payload: JSON.stringify(order) };
    await new LambdaClient(settings()).send(new InvokeCommand(invoke));
    return order.orderId;
  }

  const published = (orderId: string) =>
    eventually(async () => {
      const { events } = (await at('shop-orders', 'why', orderId, '--json')).json();
      expect(events[0]).toMatchObject({ status: 'PUBLISHED' });
      return String(events[0].eventId);
    });

  const paidIn = (TableName: string | undefined, orderId: string) =>
    eventually(async () => {
      const documents = DynamoDBDocumentClient.from(new DynamoDBClient(settings()));
      const Key = { PK: `PAYMENT#${orderId}`, SK: 'PAYMENT' };
      const { Item } = await documents.send(new GetCommand({ TableName, Key, ConsistentRead: true }));
      expect(Item).toMatchObject({ totalCents: 450 });
    });

  test('because the rule of a consumer of another Mailroom is off: status names that Mailroom, why the rule, and the command', async () => {
    const orderId = await orderWithout(/^shop-payments-.*Events/);
    const eventId = await published(orderId);
    const status = await at('shop-orders', 'status');
    expect(status.code).toBe(1);
    expect(status.out).toMatch(/^nothing visible is broken here; findings at shop-payments, below/);
    const why = await at('shop-orders', 'why', orderId);
    expect(unwrapped(why.out)).toMatch(
      /^late .*shop-payments\/payments .*its rule shop-payments-\S+ is disabled/,
    );
    const [enable = ''] = /^ *aws events enable-rule .*$/m.exec(why.out) ?? [];
    await runAwsLine(enable.trim());
    const sent = await at(
      'shop-orders',
      'events',
      'republish',
      eventId,
      '--apply',
      '--reason',
      'a rule was off',
    );
    expect(unwrapped(sent.out)).toContain('shop-payments/payments: has no row of it, and processes it once');
    await paidIn(outputs.PaymentsTable, orderId);
    expect((await at('shop-orders', 'status')).out).toMatch(/^nothing visible is broken {2}/);
  });

  test('on the other bus because the forward is off: the doctor names its rule, and a republished event arrives there, and is absorbed here', async () => {
    const orderId = await orderWithout(/-Forward/);
    const eventId = await published(orderId);
    await paidIn(outputs.PaymentsTable, orderId);
    const doctor = await at('shop-orders', 'doctor');
    expect(unwrapped(doctor.out)).toMatch(
      /does not forward events from the bus shop to shop-elsewhere: it is disabled/,
    );
    const [enable = ''] = awsLines(doctor.out).filter((line) => line.includes('enable-rule'));
    await runAwsLine(enable);
    const sent = await at(
      'shop-orders',
      'events',
      'republish',
      eventId,
      '--apply',
      '--reason',
      'the forward was off',
    );
    expect(unwrapped(sent.out)).toContain(
      'shop-payments/payments: has processed it, and absorbs the duplicate',
    );
    await paidIn(outputs.ElsewhereTable, orderId);
    expect((await at('shop-orders', 'doctor')).out).not.toContain('does not forward');
  });
});

test('each Mailroom adds its own statement to the policy of the bus', async () => {
  const { Policy = '{}' } = await new EventBridgeClient(settings()).send(
    new DescribeEventBusCommand({ Name: 'shop' }),
  );
  const { Statement } = JSON.parse(Policy) as { readonly Statement: { readonly Condition: object }[] };
  const guarded = Statement.map(({ Condition }) => JSON.stringify(Condition)).filter((text) =>
    text.includes('events:source'),
  );
  expect(guarded).toHaveLength(2);
  expect(guarded.join()).toContain('["shop-invoices","shop-orders"]');
  expect(guarded.join()).toContain('["shop-payments"]');
});

test("the attached consumer is in the directory of the Mailroom's table", async () => {
  const directory = await readDirectory(new SSMClient(settings()), outputs.OrdersTable ?? '');
  expect(directory.consumers.map(({ name, stack }) => `${stack}/${name}`)).toEqual([
    'shop-orders/history',
    'shop-invoices/invoices',
  ]);
  expect(directory.mailroom.bus).toBe('shop');
});

test.each([
  ['a service of another Mailroom', { app: 'payments' }, /Claim-shop-payments.*already exists/s],
  ["a consumer's name", { app: 'invoices' }, /Invoices\/Claim.*already exists/s],
])('refuses a second owner of %s, and changes nothing', async (_what, context, claim) => {
  const before = await made();
  const table = outputs.OrdersTable ?? '';
  await expect(deploy({ ...context, table, suffix: '-again' })).rejects.toThrow(claim);
  await eventually(async () => expect(await made()).toEqual(before));
});

test('refuses to attach to a table that belongs to no Mailroom', async () => {
  const table = 'of-no-mailroom';
  await expect(deploy({ app: 'invoices', table, suffix: '-lost' })).rejects.toThrow(
    '/mailroom/of-no-mailroom/attributes/v1',
  );
});
