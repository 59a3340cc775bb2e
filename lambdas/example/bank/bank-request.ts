import * as z from 'zod/mini';

/** A request to the bank. */
export type BankRequest = ChargeRequest | RefundRequest;

/** A request to charge a customer. */
export type ChargeRequest = z.infer<typeof chargeRequest>;

/** A request to refund a charge, fully or in part. */
export type RefundRequest = z.infer<typeof refundRequest>;

const text = z.string().check(z.minLength(1), z.maxLength(1_000));
const members = {
  orderId: text,
  customerId: text,
  amountCents: z.int().check(z.gte(0)),
  idempotencyKey: text,
};
const chargeRequest = z.object({ operation: z.literal('charge'), ...members });
const refundRequest = z.object({ operation: z.literal('refund'), ...members, chargeId: text });
/** Reads a request to the bank. */
export const bankRequest = z.discriminatedUnion('operation', [chargeRequest, refundRequest]);
