import { randomUUID } from 'node:crypto';
import { InvokeCommand } from '@aws-sdk/client-lambda';
import { DeleteCommand, GetCommand, PutCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { pause } from '../../demo/shop.ts';
import type { OrderSystem } from './order-system.ts';

/** Naive designs of a consumer, each with its own orders: at the same bank, in the same table. */
export interface NaiveConsumers {
  /** It looks whether it knows the event, charges, and remembers it; with several copies at once. */
  lookThenCharge(copies: number): Promise<Charged>;
  /** The same, one copy after the other; in between its memory is deleted. */
  lookThenChargeForgotten(): Promise<Charged>;
  /** It remembers the event first and charges then; it is ended in between, and the event is redelivered. */
  rememberThenCharge(): Promise<Charged>;
  /** It charges first and remembers then; it is ended in between, and the event is redelivered. */
  chargeThenRemember(): Promise<Charged>;
  /** It charges one message after the other, and a bad one at the end fails the batch, which is redelivered and again. */
  chargeWholeBatch(goodMessages: number, receives: number): Promise<Charged>;
  /** It reads the stock, subtracts its piece, and writes the rest; for many orders at once. */
  readThenTake(orders: number): Promise<{ readonly taken: number }>;
  /** It has a lease that nothing keeps up, and completes without a condition; the event is redelivered when that passed. */
  leaseThenCharge(): Promise<Charged & { readonly completed: number }>;
}

/** What the bank's ledger says of its orders. */
interface Charged {
  readonly charges: number;
}

/** How long the naive lease holds. */
const LEASE_MS = 1_000;

/** How long the bank takes to answer it: longer. */
const BANK_MS = 2_500;

/** Makes the naive consumers of one scenario. */
export function createNaiveConsumers(deps: {
  readonly system: OrderSystem;
  readonly runId: string;
}): NaiveConsumers {
  const { system, runId } = deps;
  const { documents, tableName: TableName } = system;

  function orderOf(design: string, customerId = 'naive') {
    const orderId = `${runId}-${design}`;
    const Key = { PK: `NAIVE#${runId}#${design}`, SK: orderId };
    return {
      Key,
      known: async () =>
        (await documents.send(new GetCommand({ TableName, Key, ConsistentRead: true }))).Item !== undefined,
      /** A key for each request: nothing tells the bank that two of them are the same charge. */
      charge: async () => {
        const Payload = JSON.stringify({
          operation: 'charge',
          orderId,
          customerId,
          amountCents: 100,
          idempotencyKey: randomUUID(),
        });
        await system.lambda.send(new InvokeCommand({ FunctionName: system.functions.bank, Payload }));
      },
      remember: async (SK = Key.SK) => {
        await documents.send(new PutCommand({ TableName, Item: { ...Key, SK, status: 'DONE' } }));
      },
      charges: async () => (await system.rows(`CHARGE#${orderId}`, system.bankTableName)).length,
    };
  }

  async function lookAndCharge({ known, charge, remember }: ReturnType<typeof orderOf>): Promise<void> {
    if (await known()) return;
    await charge();
    await remember();
  }

  return {
    lookThenCharge: async (copies) => {
      const order = orderOf('look-then-charge');
      await Promise.all(Array.from({ length: copies }, () => lookAndCharge(order)));
      return { charges: await order.charges() };
    },

    lookThenChargeForgotten: async () => {
      const order = orderOf('forgotten');
      await lookAndCharge(order);
      await documents.send(new DeleteCommand({ TableName, Key: order.Key }));
      await lookAndCharge(order);
      return { charges: await order.charges() };
    },

    rememberThenCharge: async () => {
      const order = orderOf('remember-then-charge');
      await order.remember(); // the first worker ends here
      if (!(await order.known())) await order.charge();
      return { charges: await order.charges() };
    },

    chargeThenRemember: async () => {
      const order = orderOf('charge-then-remember');
      await order.charge(); // the first worker ends here
      await lookAndCharge(order);
      return { charges: await order.charges() };
    },

    chargeWholeBatch: async (goodMessages, receives) => {
      const orders = Array.from({ length: goodMessages }, (_, n) => orderOf(`whole-batch-${n}`));
      for (let receive = 1; receive <= receives; receive += 1) {
        for (const { charge } of orders) await charge();
      }
      const charges = await Promise.all(orders.map((order) => order.charges()));
      return { charges: charges.reduce((sum, count) => sum + count, 0) };
    },

    readThenTake: async (orders) => {
      const Key = { PK: `NAIVE#${runId}#read-then-take`, SK: 'STOCK' };
      const put = async (available: number) => {
        await documents.send(new PutCommand({ TableName, Item: { ...Key, available } }));
      };
      const available = async () => {
        const { Item } = await documents.send(new GetCommand({ TableName, Key, ConsistentRead: true }));
        return Number(Item?.available);
      };
      await put(orders);
      await Promise.all(Array.from({ length: orders }, async () => put((await available()) - 1)));
      return { taken: orders - (await available()) };
    },

    leaseThenCharge: async () => {
      const order = orderOf('lease-then-charge', `slow-${BANK_MS}`);
      const work = async (worker: string): Promise<void> => {
        if (!(await lease(order.Key))) return;
        await order.charge();
        await order.remember(`COMPLETED#${worker}`);
      };
      const first = work('first');
      await Promise.race([first, pause(LEASE_MS + 100)]);
      await Promise.all([first, work('second')]);
      const completed = (await system.rows(order.Key.PK)).filter(({ status }) => status === 'DONE').length;
      return { charges: await order.charges(), completed };
    },
  };

  /** Takes a free lease. @returns whether it did */
  async function lease(Key: { readonly PK: string; readonly SK: string }): Promise<boolean> {
    const now = Date.now();
    try {
      await documents.send(
        new UpdateCommand({
          TableName,
          Key,
          UpdateExpression: 'SET leaseUntil = :until',
          ConditionExpression: 'attribute_not_exists(PK) OR leaseUntil < :now',
          ExpressionAttributeValues: { ':until': now + LEASE_MS, ':now': now },
        }),
      );
      return true;
    } catch (error) {
      if (error instanceof Error && error.name === 'ConditionalCheckFailedException') return false;
      throw error;
    }
  }
}
