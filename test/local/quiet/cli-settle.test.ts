import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { paymentKey } from '../../../lambdas/example/payments/payment.ts';
import { eventually } from '../support/eventually.ts';
import { mailroom } from '../support/mailroom.ts';
import {
  emails,
  eventsWith,
  get,
  message,
  only,
  placeOrder,
  rejection,
  shownOrder,
} from '../support/order-system.ts';

vi.setConfig({ maxConcurrency: 10 });

const APPLY = ['--apply', '--reason', 'the bank does not know the customer'];

/** An order of a customer whom the bank does not know, once payments has rejected it. @returns its OrderPlaced */
async function unchargeableOrder(): Promise<{ readonly orderId: string; readonly eventId: string }> {
  const { orderId } = await placeOrder({ customerId: 'customer-unknown' });
  return eventually(async () => {
    const { envelope } = only(await eventsWith(orderId), 'OrderPlaced');
    expect(await rejection('payments', envelope.eventId)).toMatchObject({ reason: 'POISON_MESSAGE' });
    return { orderId, eventId: envelope.eventId };
  });
}

describe.concurrent('an order whose payment is rejected permanently', () => {
  it('is cancelled by a formal rejection: PaymentRejected goes out with DISCARDED, and the stock is released', async () => {
    const { orderId, eventId } = await unchargeableOrder();
    const argv = ['dlq', 'discard', 'consumer:payments', eventId, '--reject', '--json', ...APPLY];
    await eventually(async () => {
      const run = await mailroom(...argv);
      expect(run.code, run.err).toBe(0);
      expect(run.json().deadLetters).toMatchObject([{ eventId, outcome: 'rejected' }]);
    });
    expect(await message('payments', eventId)).toMatchObject({ status: 'DISCARDED', commitId: 'rejected' });
    expect(await get({ ...paymentKey(orderId) })).toMatchObject({ status: 'rejected' });
    await eventually(async () => {
      expect(await shownOrder(orderId)).toMatchObject({
        status: 'cancelled',
        payment: 'rejected',
        stock: 'released',
      });
      expect(await emails(orderId)).toHaveLength(1);
    });
    const events = await eventsWith(orderId);
    expect(only(events, 'PaymentRejected').envelope).toMatchObject({
      causationId: eventId,
      data: { orderId, reason: 'the bank does not know the customer' },
    });
    expect(only(events, 'OrderCancelled').envelope.data).toMatchObject({ reason: 'payment-failed' });
  });

  it('is confirmed by a manual fix: the payment and PaymentCaptured commit with PROCESSED', async () => {
    const { orderId, eventId } = await unchargeableOrder();
    const { envelope } = only(await eventsWith(orderId), 'OrderPlaced');
    const { customerId, totalCents: amountCents } = envelope.data as {
      customerId: string;
      totalCents: number;
    };
    const data = { orderId, customerId, amountCents, chargeId: 'by-phone' };
    const current = await get({ ...paymentKey(orderId) });
    const fix = {
      writes: [{ Put: { Item: { ...current, status: 'captured', chargeId: 'by-phone', version: 1 } } }],
      events: [
        { type: 'PaymentCaptured', aggregateType: 'Payment', aggregateId: orderId, sequence: 1, data },
      ],
    };
    const file = join(await mkdtemp(join(tmpdir(), 'fix-')), 'fix.json');
    await writeFile(file, JSON.stringify(fix));
    const argv = ['messages', 'resolve', 'payments', eventId, '--commit', file, ...APPLY];
    const run = await mailroom(...argv);
    expect(run.code, run.err).toBe(0);
    expect(await message('payments', eventId)).toMatchObject({ status: 'PROCESSED' });
    await eventually(async () => expect(await shownOrder(orderId)).toMatchObject({ status: 'confirmed' }));
    expect(only(await eventsWith(orderId), 'PaymentCaptured').envelope).toMatchObject({
      causationId: eventId,
    });
  });
});
