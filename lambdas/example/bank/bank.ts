import { randomUUID } from 'node:crypto';
import * as z from 'zod/mini';
import type { Ledger } from './ledger.ts';
import { misbehaviour } from './misbehaviour.ts';

/** A request to the bank. */
export type ChargeRequest = z.infer<typeof chargeRequest>;

const text = z.string().check(z.minLength(1), z.maxLength(1_000));
const chargeRequest = z.object({
  orderId: text,
  customerId: text,
  amountCents: z.int().check(z.gte(0)),
  idempotencyKey: text,
});

/** What the bank answers. */
export interface BankAnswer {
  readonly statusCode: 200 | 400 | 422 | 500;
  readonly body: { readonly chargeId?: string; readonly code?: string; readonly message?: string };
}

/** What {@link createBank} needs. */
export interface BankDeps {
  readonly ledger: Ledger;
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<void>;
}

/**
 * The stand-in for a third party: a bank that charges customers. It is somebody else's system, so it is built
 * without Mailroom and shares no table with it. It honours idempotency keys, and it can be told by the customer's
 * id to misbehave, see {@link misbehaviour}.
 */
export function createBank({ ledger, now, sleep }: BankDeps) {
  return async (input: unknown): Promise<BankAnswer> => {
    const parsed = chargeRequest.safeParse(input);
    if (!parsed.success) {
      const field = parsed.error.issues[0]?.path.join('.') || 'the request';
      return { statusCode: 400, body: { code: 'INVALID_REQUEST', message: `${field} is not valid` } };
    }
    const request = parsed.data;
    const orders = misbehaviour(request.customerId);
    const number = await ledger.received(request, now());

    if (number <= orders.failures) {
      await ledger.answered(request.orderId, number, 'failed');
      return { statusCode: 500, body: { code: 'INTERNAL', message: `request ${number} fails on purpose` } };
    }
    if (orders.declines) {
      await ledger.answered(request.orderId, number, 'declined');
      return { statusCode: 422, body: { code: 'DECLINED', message: 'the customer may not be charged' } };
    }
    const charge = { ...request, chargeId: randomUUID(), chargedAt: now() };
    const outcome = orders.ignoresKeys ? await ledger.charge(charge) : await ledger.chargeOncePerKey(charge);
    await ledger.answered(request.orderId, number, outcome.kind);
    // The money has moved by now: whoever stops waiting for the answer does not know it.
    if (orders.delayMs > 0) await sleep(orders.delayMs);

    if (outcome.kind === 'key-reused') {
      return {
        statusCode: 400,
        body: { code: 'KEY_REUSED', message: 'the key was used for another charge' },
      };
    }
    return { statusCode: 200, body: { chargeId: outcome.chargeId } };
  };
}
