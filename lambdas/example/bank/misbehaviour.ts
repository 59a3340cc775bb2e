/** How a customer's id makes the bank behave. */
export interface Misbehaviour {
  /** `slow-<ms>`: it charges at once and answers after that many milliseconds. */
  readonly delayMs: number;
  /** `fail-<n>`: it answers the first n requests of an order with 500 and charges nothing. */
  readonly failures: number;
  /** `decline`: it refuses to charge, 422. */
  readonly declines: boolean;
  /** `no-keys`: it charges for every request, whatever the idempotency key. */
  readonly ignoresKeys: boolean;
}

/**
 * Reads the orders to the bank in a customer's id. Any other id is an ordinary customer.
 *
 * @example
 * ```ts
 * misbehaviour('fail-2').failures; // 2
 * ```
 */
export function misbehaviour(customerId: string): Misbehaviour {
  return {
    delayMs: numberAfter('slow', customerId),
    failures: numberAfter('fail', customerId),
    declines: customerId === 'decline',
    ignoresKeys: customerId === 'no-keys',
  };
}

function numberAfter(word: string, customerId: string): number {
  const digits = new RegExp(`^${word}-(\\d{1,6})$`).exec(customerId)?.[1];
  return digits === undefined ? 0 : Number(digits);
}
