import { type MailroomError, PoisonMessage } from '../base/errors.ts';

/** Makes the error of a message that no retry can process. */
export function poison(code: string, message: string): MailroomError {
  return new PoisonMessage(message, { code });
}
