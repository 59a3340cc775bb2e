import type { TransactWriteCommandInput } from '@aws-sdk/lib-dynamodb';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { Commit, Item, LeasedContext, TransactAction } from '../../lambdas/runtime/index.ts';
import type { JsonOf, StorableItem } from '../../lambdas/runtime/internals.ts';

// The compiler is what checks most of this file: what `expectTypeOf` claims, and that `@ts-expect-error` is needed.

const KEY = { PK: 'ORDER#42', SK: 'ORDER' };

interface Line {
  readonly sku: string;
  readonly quantity: number;
}

interface OrderRow {
  readonly PK: string;
  readonly SK: string;
  readonly lines: readonly Line[];
  readonly note?: string | undefined;
}

class Order {
  readonly placedAt = new Date();
  total(): number {
    return 4200;
  }
}

const put = (item: StorableItem) => ({ writes: [{ Put: { Item: item } }] }) satisfies Commit;

describe('an item that is written', () => {
  test('may have whatever DynamoDB stores', () => {
    const line: Line = { sku: 'lamp', quantity: 1 };
    const row: OrderRow = { ...KEY, lines: [line] };
    const read: Item = { ...KEY, anything: 1 };
    const commits = [
      put({ ...KEY, text: 'a', number: 1, big: 1n, flag: true, nothing: null, absent: undefined }),
      put({ ...KEY, bytes: new Uint8Array(), tags: new Set(['a']), prices: new Map([['EUR', 1]]) }),
      put({
        ...KEY,
        line,
        lines: [line],
        order: { at: 'noon', size: 1, lines: [line], deep: { value: [1] } },
      }),
      put({ ...row }),
      put(read),
    ];
    expect(commits).toHaveLength(5);
  });

  test('cannot have a Date, a promise, a function or a symbol', () => {
    const order = new Order();
    const commits = [
      // @ts-expect-error -- a Date
      put({ ...KEY, placedAt: order.placedAt }),
      // @ts-expect-error -- a charge that nobody awaited
      put({ ...KEY, chargeId: Promise.resolve('ch_1') }),
      // @ts-expect-error -- a method that was not called
      put({ ...KEY, total: order.total }),
      // @ts-expect-error -- a symbol
      put({ ...KEY, kind: Symbol('order') }),
      // @ts-expect-error -- a Date in a list
      put({ ...KEY, times: [order.placedAt] }),
      // @ts-expect-error -- a Date in a map
      put({ ...KEY, order: { placedAt: order.placedAt } }),
      // @ts-expect-error -- a set of objects
      put({ ...KEY, tags: new Set([{ a: 1 }]) }),
      // @ts-expect-error -- an instance of a class
      put(order),
    ];
    expect(commits).toHaveLength(8);
  });

  test('keys and values of expressions are checked, too', () => {
    const Key = KEY;
    const UpdateExpression = 'SET placedAt = :at';
    const actions: TransactAction[] = [
      // @ts-expect-error -- a Date as a key
      { Delete: { Key: { ...Key, SK: new Date() } } },
      // @ts-expect-error -- a Date as a value
      { Update: { Key, UpdateExpression, ExpressionAttributeValues: { ':at': new Date() } } },
    ];
    expect(actions).toHaveLength(2);
  });

  test('the document client accepts every item that is allowed', () => {
    type DocumentAction = NonNullable<TransactWriteCommandInput['TransactItems']>[number];
    expectTypeOf<DocumentAction>().toExtend<TransactAction>();
    expectTypeOf<TransactAction['Put']>().toExtend<
      Omit<NonNullable<DocumentAction['Put']>, 'TableName'> | undefined
    >();
  });
});

describe('the result of an effect', () => {
  test("an effect's result has the type that JSON.parse returns", () => {
    expectTypeOf<JsonOf<{ chargeId: string; cents: number }>>().toEqualTypeOf<{
      chargeId: string;
      cents: number;
    }>();
    expectTypeOf<JsonOf<Date>>().toEqualTypeOf<string>();
    expectTypeOf<JsonOf<Order>>().toEqualTypeOf<{ readonly placedAt: string }>();
    expectTypeOf<JsonOf<{ toJSON(): { at: Date } }>>().toEqualTypeOf<{ at: string }>();
    expectTypeOf<JsonOf<{ readonly at?: Date; call: () => void; kind: 'a' | 'b' }>>().toEqualTypeOf<{
      readonly at?: string | undefined;
      kind: 'a' | 'b';
    }>();
    expectTypeOf<JsonOf<readonly [Date, undefined]>>().toEqualTypeOf<readonly [string, null]>();
    expectTypeOf<JsonOf<(Date | undefined)[]>>().toEqualTypeOf<(string | null)[]>();
    expectTypeOf<JsonOf<Map<string, number>>>().toBeNever();
    expectTypeOf<JsonOf<ReadonlySet<string>>>().toBeNever();
    expectTypeOf<JsonOf<() => void>>().toBeNever();
    expectTypeOf<JsonOf<symbol>>().toBeNever();
    expectTypeOf<JsonOf<Record<string, Date>>>().toEqualTypeOf<Record<string, string>>();
    expectTypeOf<JsonOf<bigint>>().toBeNever();
    expectTypeOf<JsonOf<{ cents: bigint }>['cents']>().toBeNever();
    expectTypeOf<JsonOf<void>>().toEqualTypeOf<undefined>();
    expectTypeOf<JsonOf<unknown>>().toBeUnknown();
    expectTypeOf<JsonOf<Item>>().toEqualTypeOf<Item>();
    const order: JsonOf<Order> = JSON.parse(JSON.stringify(new Order()));
    expect(order.placedAt).toBeTypeOf('string');
  });

  test('an effect that returns a Date has a string as its result', () => {
    const handle = async (ctx: LeasedContext) => {
      const charge = await ctx.once('charge', async () => ({ chargeId: 'ch_1', chargedAt: new Date() }));
      expectTypeOf(charge).toEqualTypeOf<{ chargeId: string; chargedAt: string }>();
      // @ts-expect-error -- it was read back from JSON
      return charge.chargedAt.getTime();
    };
    expect(handle).toBeTypeOf('function');
  });
});
