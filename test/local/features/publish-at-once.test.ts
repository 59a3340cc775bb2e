import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { eventually } from '../support/eventually.ts';
import { invoke, output, read } from '../support/features.ts';

/** Places an order by one of the producers. @returns the id of its event */
const placeBy = async (producer: 'Api' | 'CutOff') =>
  String(await invoke(output(`${producer}Function`), { orderId: randomUUID() }));

const published = (eventId: string) =>
  eventually(async () => {
    const row = await read(outboxKeyOf(eventId));
    expect(row).toMatchObject({ status: 'PUBLISHED', attempts: 0 });
    return row;
  });

const processed = (eventId: string) =>
  eventually(async () => {
    expect(await read(inboxKey('reservations', eventId))).toMatchObject({ status: 'PROCESSED' });
  });

test('an order arrives, published by its producer', async () => {
  // On a machine too slow for a turn of five seconds, the relay publishes: then it is tried with another order.
  const eventId = await eventually(async () => {
    const placed = await placeBy('Api');
    expect(await published(placed)).toMatchObject({ publishedBy: 'producer' });
    return placed;
  });
  await processed(eventId);
});

test('an order whose producer cannot reach the bus arrives, published by the relay', async () => {
  const eventId = await placeBy('CutOff');
  const row = await published(eventId);
  expect(row?.publishedBy).toMatch(/^(stream|sweep)$/);
  expect(row?.publishedAt).toBeGreaterThan(Number(row?.producerUntil));
  await processed(eventId);
});
