import { describe, expect, expectTypeOf, test } from 'vitest';
import * as z from 'zod';
import {
  type AlreadyProcessed,
  type Commit,
  defineEvent,
  type Handler,
  type LeasedContext,
  lambdaConsumer,
  latest,
  leased,
  type TransactionalContext,
  transactional,
  transactionalBatch,
} from '../../lambdas/runtime/index.ts';
import type { BatchContext, ReceivedEvent } from '../../lambdas/runtime/internals.ts';
import type { InboxConsumerProps } from '../../lib/index.ts';
import { refund } from './standard-schema.ts';

const OrderPlaced = defineEvent({
  source: 'orders',
  type: 'OrderPlaced',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({ orderId: z.string(), at: z.iso.datetime().transform((text) => new Date(text)) }),
});

const OrderRefunded = defineEvent({
  source: 'orders',
  type: 'OrderRefunded',
  version: 1,
  aggregateType: 'Order',
  schema: refund,
});

describe('a handler without annotations', () => {
  test('a leased handler receives the output of the schema and a context with effects', () => {
    const handler = leased(OrderPlaced, async (event, ctx) => {
      expectTypeOf(event).toEqualTypeOf<ReceivedEvent<'OrderPlaced', { orderId: string; at: Date }>>();
      expectTypeOf(ctx).toEqualTypeOf<LeasedContext>();
      const charge = await ctx.once('charge', async (idempotencyKey, signal) => {
        expectTypeOf(idempotencyKey).toEqualTypeOf<string>();
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
        return { chargeId: 'ch_1' };
      });
      expectTypeOf(charge).toEqualTypeOf<{ chargeId: string }>();
    });
    expectTypeOf(handler).toExtend<Handler>();
    expect(handler.kind).toBe('leased');
  });

  test('a transactional handler receives the output of the schema and a context without effects', () => {
    const handler = transactional(OrderRefunded, async ({ type, data }, ctx) => {
      expectTypeOf(type).toEqualTypeOf<'OrderRefunded'>();
      expectTypeOf(data.cents).toEqualTypeOf<number>();
      expectTypeOf(ctx).toEqualTypeOf<TransactionalContext>();
      expectTypeOf(ctx).not.toHaveProperty('once');
      return { writes: [{ Delete: { Key: { PK: `REFUND#${data.orderId}`, SK: 'REFUND' } } }] };
    });
    expect(handler.kind).toBe('transactional');
  });

  test('a batch handler receives a list of outputs, and names the cause of each of its events', () => {
    const handler = transactionalBatch(OrderRefunded, async (events, ctx) => {
      expectTypeOf(events[0]?.data.cents).toEqualTypeOf<number | undefined>();
      expectTypeOf(ctx).toEqualTypeOf<BatchContext>();
      const draft = OrderPlaced.create({
        aggregateId: '1',
        data: { orderId: '1', at: '2026-01-01T00:00:00Z' },
      });
      return { events: events.map((cause) => ({ cause, draft })) };
    });
    expectTypeOf(handler).toExtend<Handler>();
    const draft = OrderPlaced.create({
      aggregateId: '1',
      data: { orderId: '1', at: '2026-01-01T00:00:00Z' },
    });
    // @ts-expect-error -- an event without its cause
    transactionalBatch(OrderPlaced, async () => ({ events: [draft] }));
    // @ts-expect-error -- and a handler of one event
    transactionalBatch(OrderPlaced, async (event: { readonly data: unknown }) => ({ writes: [event.data] }));
    // @ts-expect-error -- and an order
    transactionalBatch(OrderPlaced, async () => ({}), { order: latest() });
    expect(handler.kind).toBe('transactional');
  });

  test('a transactional handler must return writes and events', () => {
    // @ts-expect-error -- a charge is no commit
    const handler = transactional(OrderPlaced, async () => ({ charge: 'ch_1' }));
    // @ts-expect-error -- and neither is nothing
    const other = transactional(OrderPlaced, async () => {});
    expectTypeOf<Commit>().toHaveProperty('writes');
    expect([handler, other]).toHaveLength(2);
  });

  test('cannot read a member that its event lacks', () => {
    const handler = leased(OrderPlaced, async ({ data }) => {
      // @ts-expect-error -- no cents in an order that was placed
      return data.cents;
    });
    expect(handler.definition.type).toBe('OrderPlaced');
  });
});

describe('definitions of different payloads stand together', () => {
  const handlers = [leased(OrderPlaced, async () => {}), transactional(OrderRefunded, async () => ({}))];

  test('the handlers of one consumer may have events with different payloads', () => {
    expectTypeOf(handlers).toEqualTypeOf<Handler[]>();
    expect(lambdaConsumer(handlers)).toBeTypeOf('function');
    expect(
      lambdaConsumer(({ table }) => [leased(OrderPlaced, () => table.get({ PK: 'A', SK: 'B' }))]),
    ).toBeTypeOf('function');
  });

  test('the events of one InboxConsumer may have different payloads', () => {
    const events: InboxConsumerProps['events'] = [OrderPlaced, OrderRefunded];
    expect(events.map(({ type }) => type)).toEqual(['OrderPlaced', 'OrderRefunded']);
    // @ts-expect-error -- a name alone is no definition: it could be misspelt
    const names: InboxConsumerProps['events'] = ['OrderPlaced'];
    expect(names).toHaveLength(1);
  });
});

test('an outcome that is thrown has its status in its type', () => {
  expectTypeOf<AlreadyProcessed['statusCode']>().toEqualTypeOf<409>();
});
