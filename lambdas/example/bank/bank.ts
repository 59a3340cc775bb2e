import { randomUUID } from 'node:crypto';
import { type BankRequest, bankRequest } from './bank-request.ts';
import type { BankLedger, LedgerOutcome } from './ledger.ts';
import { type Misbehaviour, misbehaviour } from './misbehaviour.ts';

/** What the bank answers. */
export interface BankAnswer {
  readonly statusCode: 200 | 400 | 422 | 500;
  readonly body: {
    readonly chargeId?: string;
    readonly refundId?: string;
    readonly code?: string;
    readonly message?: string;
  };
}

/** What {@link createBank} needs. */
export interface BankDeps {
  readonly ledger: BankLedger;
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<void>;
}

/**
 * The stand-in for a third party: a bank that charges customers and gives charges back. It is somebody else's system, so
 * it is built without Mailroom and shares no table with it. It honours idempotency keys, never gives back more than it
 * charged, and can be told by the customer's id to misbehave, see {@link misbehaviour}.
 */
export function createBank({ ledger, now, sleep }: BankDeps) {
  return async (input: unknown): Promise<BankAnswer> => {
    const parsed = bankRequest.safeParse(input);
    if (!parsed.success) {
      const field = parsed.error.issues[0]?.path.join('.') || 'the request';
      return refusal(400, 'INVALID_REQUEST', `${field} is not valid`);
    }
    const request = parsed.data;
    const orders = misbehaviour(request.customerId);
    const number = await ledger.received(request, now());

    if (number <= orders.failures) {
      await ledger.answered(request.orderId, number, 'failed');
      return refusal(500, 'INTERNAL', `request ${number} fails on purpose`);
    }
    if (orders.declines && request.operation === 'charge') {
      await ledger.answered(request.orderId, number, 'declined');
      return refusal(422, 'DECLINED', 'the customer may not be charged');
    }
    const outcome = await settle(request, orders);
    await ledger.answered(request.orderId, number, outcome.kind);
    // The money has moved by now: whoever stops waiting for the answer does not know it.
    if (orders.delayMs > 0) await sleep(orders.delayMs);
    return answerTo(outcome);
  };

  function settle(request: BankRequest, { ignoresKeys }: Misbehaviour): Promise<LedgerOutcome> {
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
      return refusal(400, 'MORE_THAN_CAPTURED', 'less than that is left of the charge');
    default: {
      const { kind: _, ...ids } = outcome;
      return { statusCode: 200, body: ids };
    }
  }
}

function refusal(statusCode: 400 | 422 | 500, code: string, message: string): BankAnswer {
  return { statusCode, body: { code, message } };
}
