import type { MailroomErrorCode } from './error-codes.ts';
import { explainedBy, PoisonMessage } from './errors.ts';

/** Makes the error of a message that no retry can process. */
export function poison(code: MailroomErrorCode, message: string, options?: ErrorOptions): PoisonMessage {
  return explainedBy(new PoisonMessage(message, { ...options, code }), code);
}

/**
 * Tells an error that no retry can cure from one that is retried: true for a {@link PoisonMessage}. An HTTP 422 response from another
 * service is not one.
 */
export function isPoison(error: unknown): boolean {
  return error instanceof Error && error.name === 'PoisonMessage';
}
