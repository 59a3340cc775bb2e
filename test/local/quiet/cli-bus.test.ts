import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod/mini';
import { defineEvent, transactional } from '../../../lambdas/runtime/index.ts';
import { lambdaContext } from '../../../testing/index.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { eventually } from '../support/eventually.ts';
import { handmadeMailroom, SMALL_SOURCE, type SmallConsumer } from '../support/handmade-mailroom.ts';
import { mailroom } from '../support/mailroom.ts';
import { smallFunction } from '../support/small-function.ts';

const Sold = defineEvent({
  source: SMALL_SOURCE,
  type: 'Sold',
  version: 1,
  aggregateType: 'Sale',
  schema: z.object({ sale: z.string() }),
});

const Packed = defineEvent({
  source: 'shipping',
  type: 'Packed',
  version: 1,
  aggregateType: 'Parcel',
  schema: z.object({ sale: z.string() }),
});

/** No other test uses this region. */
const REGION = 'eu-south-1';

type Small = Awaited<ReturnType<typeof handmadeMailroom>>;

describe('two Mailrooms on one bus', () => {
  let orders: Small;
  let shipping: Small;

  const run = (small: Small, ...words: string[]) =>
    mailroom(...words, '--region', REGION, '--stack', small.stack);
  const parcels = () => `${shipping.stack}/parcels`;

  beforeAll(async () => {
    orders = await handmadeMailroom(inject('endpoint'), REGION, ['payments'], ['Sold']);
    const joined = { busName: orders.busName, service: 'shipping' };
    shipping = await handmadeMailroom(inject('endpoint'), REGION, ['parcels'], ['Sold'], joined);
  });

  afterAll(async () => {
    await orders.remove();
    await shipping.remove();
  });

  const consumerOf = ({ consumers: [consumer] }: Small): SmallConsumer => {
    if (consumer === undefined) throw new Error('There is no consumer');
    return consumer;
  };

  const sell = async () => {
    const sale = randomUUID();
    const [envelope] = await orders.publish(Sold.create({ aggregateId: sale, data: { sale } }));
    if (envelope === undefined) throw new Error('Nothing was published');
    return { eventId: envelope.eventId, sale };
  };

  /** Lets a consumer work on the one message in its queue, as its function would. */
  async function handle(small: Small): Promise<void> {
    const consumer = consumerOf(small);
    const packs = transactional(Sold, async ({ data }) => ({
      events: [Packed.create({ aggregateId: data.sale, data })],
    }));
    const quiet = transactional(Sold, async () => ({ writes: [] }));
    const handler = smallFunction(small, consumer, [small === shipping ? packs : quiet]);
    const event = await eventually(async () => {
      const taken = await consumer.take();
      expect(taken.Records).toHaveLength(1);
      return taken;
    });
    expect(await handler(event, lambdaContext())).toEqual({ batchItemFailures: [] });
  }

  test('why says that every consumer has processed an event only once the other Mailroom has', async () => {
    const { eventId } = await sell();
    await handle(orders);
    const waiting = (await run(orders, 'why', eventId, '--json')).json();
    expect(waiting.verdict).toMatchObject({ state: 'late', consumer: parcels() });
    expect(waiting.events[0].consumers).toEqual({ payments: 'PROCESSED', [parcels()]: null });

    await handle(shipping);
    const { verdict, events } = (await run(orders, 'why', eventId, '--json')).json();
    expect(verdict.text).toContain('Packed');
    expect(events.map(({ type }: { type: string }) => type)).toEqual(['Sold', 'Packed']);
    expect(events[0].consumers).toEqual({ payments: 'PROCESSED', [parcels()]: 'PROCESSED' });
  });

  test('why names an event of one Mailroom from the other', async () => {
    const { eventId } = await sell();
    await handle(orders);
    await handle(shipping);
    const { events } = (await run(shipping, 'why', eventId, '--json')).json();
    const payments = `${orders.stack}/payments`;
    expect(events[0].consumers).toEqual({ parcels: 'PROCESSED', [payments]: 'PROCESSED' });
  });

  test('the audit counts the consumers of both, finds what one of the other missed, and its repair sends it', async () => {
    const { eventId } = await sell();
    await handle(orders);
    await shipping.consumers[0]?.take();
    const audit = (...options: string[]) =>
      run(orders, 'audit', '--earlier', '--grace', '1s', '--json', ...options);
    const consumer = parcels();
    await eventually(async () => {
      const { missing, consumers } = (await audit()).json();
      expect(missing).toMatchObject([{ eventId, consumer }]);
      expect(Object.keys(consumers)).toEqual(['payments', consumer]);
    });
    const repaired = await audit('--repair', '--apply', '--reason', 'its queue was emptied');
    expect(repaired.json().repair.events).toMatchObject([{ eventId, consumer, outcome: 'sent' }]);
    await handle(shipping);
    const { missing, consumers } = (await audit()).json();
    expect(missing).toEqual([]);
    const { expected } = consumers.payments;
    expect(consumers[consumer]).toMatchObject({ expected, processed: expected });
  });

  test('status lists the other Mailroom with its consumers and its own command', async () => {
    const { neighbors } = (await run(orders, 'status', '--json')).json();
    expect(neighbors).toMatchObject([
      {
        stack: shipping.stack,
        state: 'broken',
        error: null,
        consumers: { parcels: { backlog: 0, deadLetters: 0 } },
        next: expect.stringContaining(`status --stack ${shipping.stack}`),
      },
    ]);
    const { code, out } = await run(orders, 'status');
    expect(code).toBe(1);
    expect(out).toMatch(/^on this bus +state +pending +dead +consumer +backlog +dead letters$/m);
    expect(unwrapped(out)).toContain(`${shipping.stack} has findings:`);
    expect(out).toContain(neighbors[0].next);
  });
});
