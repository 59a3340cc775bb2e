import { randomUUID } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { SQSClient } from '@aws-sdk/client-sqs';
import { SSMClient } from '@aws-sdk/client-ssm';
import { DynamoDBDocumentClient, PutCommand } from '@aws-sdk/lib-dynamodb';
import { type Consumer, createReader, type Readings, required } from '../demo/readings.ts';
import type { OrdersCall } from '../demo/shop.ts';
import { stockRow } from '../lambdas/example/inventory/stock.ts';
import { isSettled, orderStatus } from '../lambdas/example/orders/order.ts';
import type { ConsumerEntry, Directory } from '../lambdas/runtime/operations/directory.ts';
import { readDirectory } from '../lambdas/runtime/operations/ssm-directory.ts';
import type { Outputs } from '../localstack/cdk-process.ts';
import type { StepPrinter } from '../localstack/step-printer.ts';
import { type MailroomRunner, mailroomOf } from './mailroom-command.ts';
import { signedCall } from './signed-call.ts';
import type { VerifyTarget } from './target.ts';
import { type Until, untilOf } from './until.ts';

/** The order system under verification: what checks read, change and wait for. */
export interface DeployedSystem {
  readonly target: VerifyTarget;
  readonly outputs: Outputs;
  readonly directory: Directory;
  readonly events: EventBridgeClient;
  readonly lambda: LambdaClient;
  readonly sqs: SQSClient;
  readonly steps: Pick<StepPrinter, 'say' | 'step' | 'detail'>;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  readonly until: Until;
  /** Calls the orders API with a signature. */
  readonly call: OrdersCall;
  readonly mailroom: MailroomRunner;
  /** The directory entry of a consumer. */
  consumer(name: Consumer): ConsumerEntry;
  /** Places an order of one piece in stock. @returns its id */
  placeOrder(customerId: string): Promise<string>;
  /** Reads the orders of the customers whose ids have this prefix, and everything that belongs to them. */
  read(customers: string): Promise<Readings>;
  /** Waits until an order is confirmed, and its payment is mailed. @throws if it was charged or mailed more than once */
  confirmed(customers: string, orderIds: readonly string[]): Promise<void>;
}

/** Finds a deployment by its outputs. The SDK clients take the profile or the endpoint from the environment. */
export async function deployedSystem(
  deployment: Pick<DeployedSystem, 'target' | 'outputs' | 'steps' | 'signal'> & { readonly name: string },
): Promise<DeployedSystem> {
  const { target, outputs, signal, name } = deployment;
  const documents = DynamoDBDocumentClient.from(new DynamoDBClient({}));
  const TableName = required(outputs, 'TableName');
  const directory = await readDirectory(new SSMClient({}), TableName);
  const { read } = createReader(outputs);
  const until = untilOf(signal);
  const call = signedCall(target);
  return {
    ...deployment,
    directory,
    events: new EventBridgeClient({}),
    lambda: new LambdaClient({}),
    sqs: new SQSClient({ useQueueUrlAsEndpoint: false }),
    until,
    call,
    mailroom: mailroomOf(target, name, signal),
    read,
    consumer: (wanted) => {
      const found = directory.consumers.find((entry) => entry.name === wanted);
      if (found === undefined) throw new Error(`The directory has no consumer ${wanted}`);
      return found;
    },
    placeOrder: async (customerId) => {
      const key = randomUUID();
      await documents.send(new PutCommand({ TableName, Item: stockRow(`sku-${key}`, 1) }));
      const items = [{ sku: `sku-${key}`, quantity: 1, unitPrice: 450 }];
      return await until('the orders API accepts an order', async () => {
        const { status, text } = await call(new URL('orders', required(outputs, 'OrdersUrl')), {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'idempotency-key': key },
          body: JSON.stringify({ customerId, items }),
        });
        if (status !== 201) throw new Error(`POST /orders answered ${status}: ${text.slice(0, 300)}`);
        return (JSON.parse(text) as { readonly orderId: string }).orderId;
      });
    },
    confirmed: async (customers, orderIds) => {
      const readings = await until(`orders ${orderIds.join(', ')} are confirmed and mailed`, async () => {
        const seen = await read(customers);
        const mine = seen.orders.filter(({ orderId }) => orderIds.includes(orderId));
        const done = mine.filter(
          (order) => isSettled(order) && orderStatus(order) === 'confirmed' && seen.emails.has(order.orderId),
        );
        return done.length === orderIds.length && seen;
      });
      for (const orderId of orderIds) refuseDoubles(readings, orderId);
    },
  };
}

function refuseDoubles({ charges, emails }: Readings, orderId: string): void {
  const charged = charges.get(orderId)?.length ?? 0;
  const mailed = emails.get(orderId) ?? 0;
  if (charged === 1 && mailed === 1) return;
  throw new Error(`Order ${orderId} was charged ${charged} times and mailed ${mailed} times instead of once`);
}
