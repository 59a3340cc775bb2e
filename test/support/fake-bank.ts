import type { Bank, Charge, Refund } from '../../lambdas/example/payments/bank-client.ts';
import { nothingHappened, RetryLater } from '../../lambdas/runtime/index.ts';

/** A bank in memory that honors idempotency keys, and gives back only what it charged. */
export interface FakeBank extends Bank {
  /** What was charged, by idempotency key. */
  readonly charges: ReadonlyMap<string, Charge>;
  /** What was given back, by idempotency key. */
  readonly refunds: ReadonlyMap<string, Refund>;
  /** How often it was asked to charge. */
  asked(): number;
  /** What it has kept of all charges, cents. */
  keptCents(): number;
}

/**
 * Makes a bank.
 *
 * @param declines - whether it refuses to charge
 * @param unapproved - the number of its first requests for a charge that the customer has not approved
 */
export function fakeBank({ declines = false, unapproved = 0 } = {}): FakeBank {
  let asked = 0;
  const charges = new Map<string, Charge>();
  const refunds = new Map<string, Refund>();
  const idOf = (kind: string, key: string, all: ReadonlyMap<string, unknown>) =>
    `${kind}-${[...all.keys()].indexOf(key) + 1}`;

  return {
    asked: () => asked,
    charges,
    refunds,
    keptCents: () => centsOf(charges) - centsOf(refunds),
    charge: async (charge) => {
      const key = charge.idempotencyKey;
      asked += 1;
      if (asked <= unapproved) throw nothingHappened(new RetryLater({ seconds: 1 }, 'not approved'));
      if (declines) return { outcome: 'declined', reason: 'no money' };
      if (!charges.has(key)) charges.set(key, charge);
      return { outcome: 'captured', chargeId: idOf('charge', key, charges) };
    },
    refund: async (refund) => {
      const key = refund.idempotencyKey;
      if (!refunds.has(key)) {
        const charged = [...charges].find(([of]) => idOf('charge', of, charges) === refund.chargeId)?.[1];
        const back = [...refunds.values()].filter(({ chargeId }) => chargeId === refund.chargeId);
        if (charged === undefined) throw new Error(`There is no charge ${refund.chargeId}`);
        if (charged.amountCents < refund.amountCents + centsOf(new Map(back.entries())))
          throw new Error(`${refund.chargeId} was given back before`);
        refunds.set(key, refund);
      }
      return { refundId: idOf('refund', key, refunds) };
    },
  };
}

function centsOf(all: ReadonlyMap<unknown, { readonly amountCents: number }>): number {
  return [...all.values()].reduce((sum, { amountCents }) => sum + amountCents, 0);
}
