import { randomUUID } from 'node:crypto';
import { type BankRequest, bankRequest } from './bank-request.ts';
import type { BankLedger, LedgerOutcome } from './ledger.ts';
import { type Misbehavior, misbehavior } from './misbehavior.ts';

/** The bank's response. */
export interface BankAnswer {
  readonly statusCode: 200 | 202 | 400 | 422 | 500;
  readonly body: {
    readonly chargeId?: string;
    readonly refundId?: string;
    readonly code?: string;
    readonly message?: string;
    readonly retryAfterSeconds?: number;
  };
}

/** Dependencies of {@link createBank}. */
export interface BankDeps {
  readonly ledger: BankLedger;
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<void>;
}

/**
 * Creates a stand-in for a third party: a bank that charges customers and refunds charges. It represents an external system, so it
 * does not use Mailroom and shares no table with it. It honors idempotency keys, never refunds more than it charged, and a
 * customer's id can make it misbehave, see {@link misbehavior}.
 */
export function createBank({ ledger, now, sleep }: BankDeps) {
  return async (input: unknown): Promise<BankAnswer> => {
    const parsed = bankRequest.safeParse(input);
    if (!parsed.success) {
      const field = parsed.error.issues[0]?.path.join('.') || 'the request';
      return refusal(400, 'INVALID_REQUEST', `${field} is not valid`);
    }
    const request = parsed.data;
    const orders = misbehavior(request.customerId);
    const number = await ledger.received(request, now());

    if (number <= orders.failures) {
      await ledger.answered(request.orderId, number, 'failed');
      return refusal(500, 'INTERNAL', `request ${number} fails on purpose`);
    }
    if (orders.declines && request.operation === 'charge') {
      await ledger.answered(request.orderId, number, 'declined');
      return refusal(422, 'DECLINED', 'the customer may not be charged');
    }
    if (orders.isLate && request.operation === 'charge') {
      await ledger.answered(request.orderId, number, 'not-approved');
      return notApproved(number);
    }
    if (orders.isUnknown && request.operation === 'charge') {
      await ledger.answered(request.orderId, number, 'unknown-customer');
      return refusal(400, 'UNKNOWN_CUSTOMER', 'the bank does not know the customer');
    }
    const outcome = await settle(request, orders);
    await ledger.answered(request.orderId, number, outcome.kind);
    // The charge has already happened, even if the caller stops waiting for the response.
    if (orders.delayMs > 0) await sleep(orders.delayMs);
    return answerTo(outcome);
  };

  function settle(request: BankRequest, { ignoresKeys }: Misbehavior): Promise<LedgerOutcome> {
    if (request.operation === 'charge') {
      const charge = { ...request, chargeId: randomUUID(), chargedAt: now() };
      return ignoresKeys ? ledger.charge(charge) : ledger.chargeOncePerKey(charge);
    }
    return ledger.refundOncePerKey({ ...request, refundId: randomUUID(), refundedAt: now() });
  }
}

function answerTo(outcome: LedgerOutcome): BankAnswer {
  switch (outcome.kind) {
    case 'key-reused':
      return refusal(400, 'KEY_REUSED', 'the key was used for another request');
    case 'no-such-charge':
      return refusal(400, 'NO_SUCH_CHARGE', 'the order has no such charge');
    case 'more-than-captured':
      return refusal(400, 'MORE_THAN_CAPTURED', 'the charge has a smaller balance left');
    default: {
      const { kind: _, ...ids } = outcome;
      return { statusCode: 200, body: ids };
    }
  }
}

/** A pause of 15 seconds, then twice as long each time: 10 requests cover an hour. */
function notApproved(number: number): BankAnswer {
  const retryAfterSeconds = 15 * 2 ** (number - 1);
  const message = 'the customer has not approved the charge';
  return { statusCode: 202, body: { code: 'NOT_APPROVED', message, retryAfterSeconds } };
}

function refusal(statusCode: 400 | 422 | 500, code: string, message: string): BankAnswer {
  return { statusCode, body: { code, message } };
}
