import { describe, expect, expectTypeOf, test } from 'vitest';
import * as z from 'zod';
import { validateData } from '../../lambdas/runtime/events/payload-validation.ts';
import {
  type AnyEventDefinition,
  defineEvent,
  type EventDraft,
  type EventOf,
} from '../../lambdas/runtime/index.ts';
import type { ReceivedEvent } from '../../lambdas/runtime/internals.ts';
import { refund } from './standard-schema.ts';

// The compiler is what checks most of this file: what `expectTypeOf` claims, and that `@ts-expect-error` is needed.

const OrderPlaced = defineEvent({
  source: 'orders',
  type: 'OrderPlaced',
  version: 2,
  aggregateType: 'Order',
  schema: z.object({ orderId: z.string(), totalCents: z.int() }),
  upcast: (data, version) => {
    expectTypeOf(data).toEqualTypeOf<unknown>();
    expectTypeOf(version).toEqualTypeOf<number>();
    return data;
  },
});

const OrderShipped = defineEvent({
  source: 'orders',
  type: 'OrderShipped',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({
    orderId: z.string(),
    shippedAt: z.iso.datetime().transform((text) => new Date(text)),
    parcels: z.int().default(1),
  }),
});

const OrderRefunded = defineEvent({
  source: 'orders',
  type: 'OrderRefunded',
  version: 1,
  aggregateType: 'Order',
  schema: refund,
});

const catalog = [OrderPlaced, OrderShipped, OrderRefunded] as const;
type AnyEvent = EventOf<(typeof catalog)[number]>;

describe('the types of a catalog', () => {
  test("infer each event's literal name", () => {
    expectTypeOf(OrderPlaced.type).toEqualTypeOf<'OrderPlaced'>();
    expectTypeOf<AnyEvent['type']>().toEqualTypeOf<'OrderPlaced' | 'OrderShipped' | 'OrderRefunded'>();
    expect(catalog.map(({ type }) => type)).toEqual(['OrderPlaced', 'OrderShipped', 'OrderRefunded']);
  });

  test('narrow the payload by the name', () => {
    const centsOf = (event: AnyEvent): number => {
      switch (event.type) {
        case 'OrderPlaced':
          expectTypeOf(event).toEqualTypeOf<
            ReceivedEvent<'OrderPlaced', { orderId: string; totalCents: number }>
          >();
          return event.data.totalCents;
        case 'OrderRefunded':
          return -event.data.cents;
        case 'OrderShipped':
          expectTypeOf(event.data.shippedAt).toEqualTypeOf<Date>();
          // @ts-expect-error -- a shipment has no total
          return event.data.totalCents ?? 0;
        default:
          expectTypeOf(event).toBeNever();
          return 0;
      }
    };
    const shipped = { type: 'OrderShipped', data: {} } as unknown as AnyEvent;
    expect(centsOf(shipped)).toBe(0);
  });

  test('take what the schema reads, and give what it hands on', async () => {
    type Shipped = Parameters<typeof OrderShipped.create>[0]['data'];
    expectTypeOf<Shipped>().toEqualTypeOf<{
      orderId: string;
      shippedAt: string;
      parcels?: number | undefined;
    }>();
    expectTypeOf<EventOf<typeof OrderShipped>['data']>().toEqualTypeOf<{
      orderId: string;
      shippedAt: Date;
      parcels: number;
    }>();
    const written: Shipped = { orderId: '42', shippedAt: '2026-11-21T01:09:00Z' };
    expect(await validateData(OrderShipped, written)).toEqual({
      orderId: '42',
      shippedAt: new Date(written.shippedAt),
      parcels: 1,
    });
  });

  test('a hand-written validator gives the same types as a library', async () => {
    expectTypeOf(OrderRefunded.create)
      .parameter(0)
      .toHaveProperty('data')
      .toEqualTypeOf<{ readonly orderId: string; readonly cents: string }>();
    expectTypeOf<EventOf<typeof OrderRefunded>['data']['cents']>().toEqualTypeOf<number>();
    const draft = OrderRefunded.create({ aggregateId: '42', data: { orderId: '42', cents: '4200' } });
    expect(await validateData(OrderRefunded, draft.data)).toEqual({ orderId: '42', cents: 4200 });
    await expect(validateData(OrderRefunded, { orderId: '42', cents: 4200 })).rejects.toThrow(
      /data\.\*: not valid/,
    );
  });
});

describe('create', () => {
  test('refuses a payload of another shape', () => {
    const drafts = [
      // @ts-expect-error -- the total is missing
      OrderPlaced.create({ aggregateId: '42', data: { orderId: '42' } }),
      // @ts-expect-error -- the total is no text
      OrderPlaced.create({ aggregateId: '42', data: { orderId: '42', totalCents: '4200' } }),
      // @ts-expect-error -- nothing of that name
      OrderPlaced.create({ aggregateId: '42', data: { orderId: '42', totalCents: 4200, coupon: 'X' } }),
      // @ts-expect-error -- whose event it is must be said
      OrderPlaced.create({ data: { orderId: '42', totalCents: 4200 } }),
    ];
    expectTypeOf(drafts).toExtend<readonly EventDraft[]>();
    expect(drafts).toHaveLength(4);
  });

  test('makes drafts that stand in one list', () => {
    const data = { orderId: '42', totalCents: 4200 };
    const drafts: readonly EventDraft[] = [
      OrderPlaced.create({ aggregateId: '42', data }),
      OrderRefunded.create({ aggregateId: '42', data: { orderId: '42', cents: '1' } }),
    ];
    expect(drafts.map(({ definition }) => definition.type)).toEqual(['OrderPlaced', 'OrderRefunded']);
  });
});

test('a definition needs a source, a schema, and a name that is known when it is compiled', () => {
  const named = { type: 'Nothing', version: 1, aggregateType: 'Order' } as const;
  // @ts-expect-error -- no schema
  expect(() => defineEvent({ ...named, source: 'orders' })).toThrow(/schema/);
  // @ts-expect-error -- no source
  expect(() => defineEvent({ ...named, schema: OrderPlaced.schema })).toThrow(/source is undefined/);
  expectTypeOf(OrderPlaced).toExtend<AnyEventDefinition>();
  expectTypeOf(catalog).toExtend<readonly AnyEventDefinition[]>();
});
