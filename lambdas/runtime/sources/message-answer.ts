import { errorCode, errorMessage } from '../base/errors.ts';
import type { MessageOutcome } from '../consume/message-outcome.ts';
import { type Redact, redactedError } from '../observe/redaction.ts';

/** The reason why a message was not processed. */
export interface AnswerReason {
  /** The code of the error, e.g. `UNREADABLE_MESSAGE`. */
  readonly code: string;
  /** The text of the error, redacted. */
  readonly message: string;
}

/** The answer to give to the source of a message. */
export type MessageAnswer =
  /** Processed now. Acknowledge it. */
  | { readonly kind: 'done' }
  /** Processed or discarded before. Acknowledge it. */
  | { readonly kind: 'duplicate' }
  /** Deliver it again after `afterMs`. An earlier delivery does no harm: it runs no handler, and gets the rest of the time as its answer. */
  | { readonly kind: 'retry'; readonly afterMs: number; readonly reason: AnswerReason }
  /** Never deliver it again: put it where dead letters are kept, then acknowledge it. */
  | { readonly kind: 'rejected'; readonly reason: AnswerReason };

/** The answer to the source that an outcome means. */
export function answerOf(outcome: MessageOutcome, redact?: Redact): MessageAnswer {
  if (outcome.kind === 'done') return { kind: outcome.duplicate ? 'duplicate' : 'done' };
  const { afterMs, rejected } = outcome;
  const error = redact === undefined ? outcome.error : redactedError(outcome.error, redact);
  const reason = { code: errorCode(error), message: errorMessage(error) };
  return rejected ? { kind: 'rejected', reason } : { kind: 'retry', afterMs, reason };
}
