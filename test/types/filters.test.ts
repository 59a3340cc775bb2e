import { expect, test } from 'vitest';
import * as z from 'zod';
import { subscribe } from '../../lambdas/runtime/events/subscribe.ts';
import { defineEvent } from '../../lambdas/runtime/index.ts';

const OrderShipped = defineEvent({
  source: 'orders',
  type: 'OrderShipped',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({
    country: z.enum(['CH', 'AT', 'NO']),
    totalCents: z.coerce.number<number>(),
    note: z.string().nullish(),
    at: z.date(),
    express: z.boolean(),
    address: z.object({ city: z.string() }).optional(),
    tags: z.array(z.string()),
    items: z.array(z.object({ sku: z.string(), weight: z.union([z.number(), z.literal('unknown')]) })),
  }),
});

const Pinged = defineEvent({
  source: 'orders',
  type: 'Pinged',
  version: 1,
  aggregateType: 'Order',
  schema: z.string(),
});

test('a filter takes the fields of the published payload, and the operators of their types', () => {
  const filter = {
    country: ['CH', { 'anything-but': ['AT', 'NO'] }],
    totalCents: [{ numeric: ['>=', 10_000, '<', 20_000] }],
    note: [null, { prefix: 'fragile' }, { exists: false }],
    at: [{ prefix: '2026-' }],
    express: [true],
    address: { city: [{ 'equals-ignore-case': 'zürich' }] },
    tags: ['gift', { wildcard: 'gift-*' }],
    items: { sku: [{ suffix: '-XL' }], weight: ['unknown', { numeric: ['>', 30] }] },
  } as const;
  expect(subscribe(OrderShipped, { filter })).toEqual({ source: 'orders', type: 'OrderShipped', filter });
  expect(subscribe({ source: 'orders', type: 'Any' }, { filter: { any: [{ prefix: 'x' }] } }).filter).toEqual(
    { any: [{ prefix: 'x' }] },
  );
});

test('the compiler refuses what cannot match', () => {
  const refused = () => [
    // @ts-expect-error -- no such field
    subscribe(OrderShipped, { filter: { contry: ['CH'] } }),
    // @ts-expect-error -- no such country
    subscribe(OrderShipped, { filter: { country: ['DE'] } }),
    // @ts-expect-error -- not a list of tests
    subscribe(OrderShipped, { filter: { country: 'CH' } }),
    // @ts-expect-error -- a number has no prefix
    subscribe(OrderShipped, { filter: { totalCents: [{ prefix: '1' }] } }),
    // @ts-expect-error -- a string has no range
    subscribe(OrderShipped, { filter: { country: [{ numeric: ['>', 1] }] } }),
    // @ts-expect-error -- a range begins with its lower end
    subscribe(OrderShipped, { filter: { totalCents: [{ numeric: ['<', 1, '>', 0] }] } }),
    // @ts-expect-error -- a date is published as a text
    subscribe(OrderShipped, { filter: { at: [new Date(0)] } }),
    // @ts-expect-error -- a required object has fields, not tests
    subscribe(OrderShipped, { filter: { address: ['Zürich'] } }),
    // @ts-expect-error -- a payload without fields has no filter
    subscribe(Pinged, { filter: { length: [1] } }),
  ];
  expect(refused).toBeTypeOf('function');
});
