import '../../../localstack/quiet-sdk.ts';
import { randomUUID } from 'node:crypto';
import { DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import { DescribeEventBusCommand, EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { ListQueuesCommand, SQSClient } from '@aws-sdk/client-sqs';
import { SSMClient } from '@aws-sdk/client-ssm';
import { DynamoDBDocumentClient, GetCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readDirectory } from '../../../lambdas/runtime/operations/ssm-directory.ts';
import type { Outputs } from '../../../localstack/cdk-process.ts';
import { deployLocal } from '../../../localstack/deploy.ts';
import { type Engine, startEngine } from '../../../localstack/engine.ts';
import { freePort } from '../../../localstack/free-port.ts';
import { LOCAL_REGION, projectRoot } from '../../../localstack/workspace.ts';
import { eventually } from '../support/eventually.ts';

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
