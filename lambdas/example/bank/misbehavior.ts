/** The behavior that a customer's id selects at the bank. */
export interface Misbehavior {
  /** `slow-<ms>`: it charges immediately and responds after this many milliseconds. */
  readonly delayMs: number;
  /** `fail-<n>`: it responds to the first n requests of an order with 500 and charges nothing. */
  readonly failures: number;
  /** `decline`: it refuses to charge, 422. */
  readonly declines: boolean;
  /** `late`, or an id that ends with `-late`: it does not approve a charge, 202, and the bank charges nothing. */
  readonly isLate: boolean;
  /** `unknown`, or an id that ends with `-unknown`: it does not know the customer, 400. */
  readonly isUnknown: boolean;
  /** `no-keys`: it makes a charge for every request, ignoring the idempotency key. */
  readonly ignoresKeys: boolean;
}

/**
 * Reads the bank's behavior from a customer's id. Any other id is an ordinary customer.
 *
 * @example
 * ```ts
 * misbehavior('fail-2').failures; // 2
 * ```
 */
export function misbehavior(customerId: string): Misbehavior {
  return {
    delayMs: numberAfter('slow', customerId),
    failures: numberAfter('fail', customerId),
    declines: customerId === 'decline',
    isLate: /(^|-)late$/.test(customerId),
    isUnknown: /(^|-)unknown$/.test(customerId),
    ignoresKeys: customerId === 'no-keys',
  };
}

function numberAfter(word: string, customerId: string): number {
  const digits = new RegExp(`^${word}-(\\d{1,6})$`).exec(customerId)?.[1];
  return digits === undefined ? 0 : Number(digits);
}
