import { describe, expect, it } from 'vitest';
import { OrderCancelled, PaymentCaptured } from '../../../lambdas/example/events.ts';
import { type EmailProvider, storedEmails } from '../../../lambdas/example/notifications/email-provider.ts';
import { sendCancellation } from '../../../lambdas/example/notifications/send-cancellation.ts';
import { sendReceipt } from '../../../lambdas/example/notifications/send-receipt.ts';
import { orderIdOf } from '../../../lambdas/example/orders/order.ts';
import { memoryTable } from '../../../testing/index.ts';
import { consumerRig } from './consumer-rig.ts';

const orderId = orderIdOf('key');
const captured = PaymentCaptured.create({
  aggregateId: orderId,
  sequence: 1,
  data: { orderId, customerId: 'alice', amountCents: 2_505, chargeId: 'c-1' },
});
const signal = new AbortController().signal;
const clock = { now: () => 1_000, sleep: async () => {} };

/** Notifications with a provider that sends every e-mail and whose first answers are lost. */
function setUp(part: { lostAnswers?: number } = {}) {
  let lost = part.lostAnswers ?? 0;
  const table = memoryTable();
  const provider = storedEmails({ table, clock });
  const emails: EmailProvider = {
    send: async (email, signal) => {
      const sent = await provider.send(email, signal);
      lost -= 1;
      if (lost >= 0) throw new Error('the answer was lost');
      return sent;
    },
  };
  return consumerRig(() => [sendReceipt({ emails }), sendCancellation({ emails })], table);
}

describe('notifications', () => {
  it('sends one e-mail with the amount paid', async () => {
    const { announce, deliver, rows } = setUp();
    const event = await announce(captured);
    expect(await deliver(event)).toBe('done');
    expect(rows('NOTIFICATION#')).toEqual([
      {
        PK: `NOTIFICATION#${orderId}`,
        SK: expect.stringMatching(/^EMAIL#[0-9a-f]{32}$/),
        schema: 1,
        to: 'alice',
        subject: `We have received your payment for order ${orderId}`,
        text: `Thank you. We have charged 25.05 for order ${orderId}.`,
        reference: orderId,
        idempotencyKey: expect.stringContaining(event.eventId),
        sentAt: 1_000,
      },
    ]);
  });

  it.each([
    [
      'out-of-stock',
      2_505,
      'We are sorry: some of the items are out of stock. We have refunded 25.05 to you.',
    ],
    ['out-of-stock', 0, 'We are sorry: some of the items are out of stock. You have not been charged.'],
    ['payment-declined', 0, 'We are sorry: your bank declined the payment. You have not been charged.'],
  ] as const)(
    'sends one e-mail for an order cancelled as %s with %i cents refunded',
    async (reason, refundedCents, text) => {
      const { announce, deliver, rows } = setUp();
      const event = await announce(
        OrderCancelled.create({
          aggregateId: orderId,
          data: { orderId, customerId: 'alice', reason, refundedCents },
        }),
      );
      expect([await deliver(event), await deliver(event)]).toEqual(['done', 'done']);
      expect(rows('NOTIFICATION#')).toEqual([
        expect.objectContaining({ to: 'alice', subject: `We have cancelled your order ${orderId}`, text }),
      ]);
    },
  );

  it('sends it once, however often the message comes', async () => {
    const { announce, deliver, rows } = setUp();
    const event = await announce(captured);
    expect([await deliver(event), await deliver(event)]).toEqual(['done', 'done']);
    expect(rows('NOTIFICATION#')).toHaveLength(1);
  });

  it('sends it once also when the provider sent it and the answer was lost', async () => {
    const { announce, deliver, rows } = setUp({ lostAnswers: 2 });
    const event = await announce(captured);
    const outcomes = [await deliver(event), await deliver(event), await deliver(event)];
    expect(outcomes).toEqual(['is redelivered', 'is redelivered', 'done']);
    expect(rows('NOTIFICATION#')).toHaveLength(1);
  });
});

describe('the stand-in for the e-mail provider', () => {
  const email = { to: 'alice', subject: 's', text: 't', reference: orderId, idempotencyKey: 'key-1' };

  it('keeps a row for each key and answers the same key alike', async () => {
    const table = memoryTable();
    const emails = storedEmails({ table, clock });
    const first = await emails.send(email, signal);
    expect(await emails.send({ ...email, text: 'another' }, signal)).toEqual(first);
    expect(await emails.send({ ...email, idempotencyKey: 'key-2' }, signal)).not.toEqual(first);
    expect(table.items().map((row) => row.text)).toEqual(['t', 't']);
  });
});
