/**
 * Returns the key under which the provider of an effect can recognize a repeated call. A contract with every provider: a message that is
 * repeated after a deployment must have the same key, so this form can never change.
 */
export function idempotencyKey(consumer: string, eventId: string, effect: string): string {
  return `${consumer}:${eventId}:${effect}`;
}
