import type { NativeAttributeValue } from '@aws-sdk/util-dynamodb';
import { errorHelp } from './documentation.ts';
import type { MailroomErrorCode } from './error-codes.ts';
import { DELAY_MAX_MS } from './retry-schedule.ts';

/** Marks Mailroom errors from any copy of this module, because a bundle may contain two. */
const MAILROOM_ERROR = Symbol.for('cdk-mailroom.error');

/**
 * The base class of Mailroom's errors. Recognize them with {@link isMailroomError}, not with `instanceof`, because a bundle may
 * contain two copies of a class.
 */
export class MailroomError extends Error {
  /** One of {@link MailroomErrorCode}, or the code that a handler passed to `PoisonMessage`. */
  readonly code: string;
  /** The number of milliseconds after which to retry; absent where waiting does not help. */
  readonly retryAfterMs: number | undefined;
  /** The address of the code's explanation: its cause and what to do. Absent for a code that is not Mailroom's own. */
  readonly help: string | undefined;
  readonly [MAILROOM_ERROR] = true;

  constructor(code: string, message: string, options?: ErrorOptions & { readonly retryAfterMs?: number }) {
    super(message, options);
    this.name = 'MailroomError';
    this.code = code;
    this.retryAfterMs = options?.retryAfterMs;
    this.help = errorHelp(code as MailroomErrorCode);
  }
}

/** Returns the same error with the explanation of a code; with none if AWS or a handler chose its code. */
export function explainedBy<E extends MailroomError>(error: E, code: MailroomErrorCode | undefined): E {
  return Object.assign(error, { help: code && errorHelp(code) });
}

/** The classes that decide a message's outcome. A `PoisonMessage` is recognized by its class, because it may carry any code. */
const OUTCOMES: Readonly<Partial<Record<MailroomErrorCode, string>>> = {
  ALREADY_PROCESSED: 'AlreadyProcessed',
  RETRY_LATER: 'RetryLater',
};

/** The error class of each code whose error has further properties; {@link isMailroomError} narrows to it. */
export interface MailroomErrorOfCode {
  ALREADY_COMMITTED: AlreadyCommitted;
  CONDITION_FAILED: ConditionFailed;
  RETRY_LATER: RetryLater;
  TRANSACTION_CANCELLED: TransactionCancelled;
}

/**
 * Returns true if an error is a Mailroom error, whichever copy of the package threw it. If you pass a code, returns true if
 * the error has that code, including errors that your own `Table` implementation throws.
 *
 * @example
 * ```ts
 * try {
 *   await outbox.commit({ writes, events });
 * } catch (error) {
 *   if (isMailroomError(error, 'TRANSACTION_CANCELLED')) return conflict(error.reasons);
 *   throw error;
 * }
 * ```
 */
export function isMailroomError<Code extends MailroomErrorCode>(
  error: unknown,
  code?: Code,
): error is Code extends keyof MailroomErrorOfCode ? MailroomErrorOfCode[Code] : MailroomError {
  try {
    const { [MAILROOM_ERROR]: ours, name } = Object(error) as Partial<MailroomError>;
    if (code === undefined) return ours === true;
    const outcome = OUTCOMES[code];
    return errorCode(error) === code && (outcome === undefined || (ours === true && name === outcome));
  } catch {
    return false; // a getter threw
  }
}

/**
 * Thrown by a consumer's handler for a message that can never succeed. The message is not retried: it is rejected (its inbox
 * row records the reason) and SQS moves it to the dead-letter queue.
 *
 * @example
 * ```ts
 * if (order.currency !== 'EUR') throw new PoisonMessage(`currency ${order.currency} is not supported`);
 * ```
 */
export class PoisonMessage extends MailroomError {
  /** The HTTP status of this outcome. */
  readonly statusCode = 422;

  constructor(message: string, options?: ErrorOptions & { code?: string }) {
    super(options?.code ?? 'POISON_MESSAGE', message, options);
    if (options?.code !== undefined) explainedBy(this, undefined);
    this.name = 'PoisonMessage';
  }
}

/**
 * Thrown by a consumer's handler when the work of this message was already done outside this inbox, for example by a legacy
 * job. The message is recorded as processed. Throw it only for your handler's own work: a 409 response from another service
 * does not mean the same.
 *
 * @example
 * ```ts
 * if (await legacy.wasImported(event.eventId)) throw new AlreadyProcessed('imported by the legacy job');
 * ```
 */
export class AlreadyProcessed extends MailroomError {
  /** The HTTP status of this outcome. */
  readonly statusCode = 409;

  constructor(message: string, options?: ErrorOptions) {
    super('ALREADY_PROCESSED', message, options);
    this.name = 'AlreadyProcessed';
  }
}

/** A delay for {@link RetryLater}; its properties are added up. */
export interface RetryDelay {
  /** @default 0 */
  readonly seconds?: number | undefined;
  /** @default 0 */
  readonly minutes?: number | undefined;
  /** @default 0 */
  readonly hours?: number | undefined;
}

/**
 * Thrown by a consumer's handler to retry this message after a delay that the handler chooses, for example the delay in a
 * provider's `Retry-After` header, which `throwForStatus` reads. A wait counts no attempt: a provider's rate limit says nothing about the
 * message. A day after the first one, each counts. A delay of 0 counts, too.
 *
 * Each wait uses up a receive of the queue. The first ten waits are as long as requested; later ones are extended to 1, 2, 4, 8 and then 15
 * minutes, so that the receives of the default queue (105) last for at least 18 hours. After the last receive, SQS moves the message to
 * the dead-letter queue.
 *
 * @example
 * ```ts
 * if (response.status === 429) throw new RetryLater({ seconds: Number(response.headers.get('retry-after')) }, 'rate limited');
 * ```
 */
export class RetryLater extends MailroomError {
  declare readonly retryAfterMs: number;

  /**
   * @param after - milliseconds, or hours, minutes and seconds; at most 11 hours
   * @param cause - the reason, as an error or text; it is stored and logged instead of this error
   * @throws `BAD_DELAY` if the delay is not a number from 0 to 11 hours
   */
  constructor(after: number | RetryDelay, cause?: unknown) {
    const afterMs = delayMs(after);
    if (!(afterMs >= 0 && afterMs <= DELAY_MAX_MS)) {
      throw new MailroomError(
        'BAD_DELAY',
        `RetryLater received a delay of ${afterMs} ms; allowed: 0 to ${DELAY_MAX_MS} (11 hours). SQS can hide a message for at most 12 hours.`,
        { cause },
      );
    }
    super('RETRY_LATER', cause === undefined ? `Retry in ${afterMs} ms.` : errorMessage(cause), {
      cause,
      retryAfterMs: afterMs,
    });
    this.name = 'RetryLater';
  }
}

function delayMs(after: number | RetryDelay): number {
  if (typeof after === 'number') return after;
  const { seconds = 0, minutes = 0, hours = 0 } = after ?? { seconds: Number.NaN };
  return ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000;
}

/** The condition of a single write failed. */
export class ConditionFailed extends MailroomError {
  /** The existing row; absent if none exists. */
  readonly item: Record<string, NativeAttributeValue> | undefined;

  constructor(item: Record<string, NativeAttributeValue> | undefined, options?: ErrorOptions) {
    super('CONDITION_FAILED', 'The condition of the write was not met; nothing was written.', options);
    this.name = 'ConditionFailed';
    this.item = item;
  }
}

/** The reason why one action of a cancelled transaction was refused. */
export interface CancellationReason {
  /** DynamoDB's reason code: `None`, `ConditionalCheckFailed`, `TransactionConflict`, `ThrottlingError`, … */
  readonly code: string;
  /** DynamoDB's message; absent if it sent none. */
  readonly message?: string | undefined;
  /** The existing row, if the action requested it and the row existed. */
  readonly item?: Record<string, NativeAttributeValue> | undefined;
}

/** DynamoDB cancelled a whole transaction; `reasons` are in the order of its actions. */
export class TransactionCancelled extends MailroomError {
  /** One reason per action of the transaction, in order. */
  readonly reasons: readonly CancellationReason[];

  constructor(reasons: readonly CancellationReason[], options?: ErrorOptions) {
    super(
      'TRANSACTION_CANCELLED',
      `The transaction was cancelled, and nothing was written: ${refusals(reasons)}.`,
      options,
    );
    this.name = 'TransactionCancelled';
    this.reasons = reasons;
  }
}

/** Lists the refused actions with their reasons; actions are counted from 1 in the order of the transaction. */
function refusals(reasons: readonly CancellationReason[]): string {
  const refused = reasons.flatMap(({ code, message }, i) => {
    if (code === 'None') return [];
    // DynamoDB's message for a failed condition repeats the code.
    const said = code === 'ConditionalCheckFailed' || !message ? '' : ` (${message})`;
    return [`action ${i + 1} of ${reasons.length} failed with ${code}${said}`];
  });
  return refused.length > 0 ? refused.join(', ') : 'DynamoDB gave no reason';
}

/** Another event with the same `uniqueBy` was committed before: nothing was written. */
export class AlreadyCommitted extends MailroomError {
  /** The index of the refused event in `events` of the commit; that of the first one, if several were refused. */
  readonly index: number;
  /** The id of the event that was committed before. Absent if the row of the key was changed by hand. */
  readonly firstEventId: string | undefined;

  constructor(type: string, index: number, firstEventId: string | undefined, options?: ErrorOptions) {
    super(
      'ALREADY_COMMITTED',
      `Event ${type} was committed before under its uniqueBy, as ${firstEventId ?? 'an event whose id is unknown'}, and nothing was written.`,
      options,
    );
    this.name = 'AlreadyCommitted';
    this.index = index;
    this.firstEventId = firstEventId;
  }
}

/** This worker no longer holds the message's lease: another claim or an operator has taken it over. */
export class FenceLost extends MailroomError {
  constructor(message: string, options?: ErrorOptions) {
    super('FENCE_LOST', message, options);
    this.name = 'FenceLost';
  }
}

/** The format of a code. Text in any other format may be data, and codes are stored and logged. */
const CODE = /^[A-Za-z][\w.:$#-]{0,99}$/;

/** Returns an error's `code`, or else its `name`, or else `UNKNOWN`. Text that does not have the format of a code is ignored. */
export function errorCode(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'UNKNOWN';
  try {
    const { code, name } = error as { code?: unknown; name?: unknown };
    return (
      [code, name].find((text): text is string => typeof text === 'string' && CODE.test(text)) ?? 'UNKNOWN'
    );
  } catch {
    return 'UNKNOWN'; // a getter threw
  }
}

/** Returns the name of an error's class. Unlike its `name` and `code`, data cannot have set it. */
export function errorClass(error: unknown): string {
  try {
    const { name } = Object.getPrototypeOf(error).constructor;
    return CODE.test(name) ? name : 'UNKNOWN';
  } catch {
    return 'UNKNOWN'; // not an object
  }
}

/** Returns the message of any thrown value. @param charsMax - longer messages are cut here @default 1,000 */
export function errorMessage(error: unknown, charsMax = 1_000): string {
  try {
    const message = error instanceof Error || hasMessage(error) ? error.message : error;
    return String(message).slice(0, charsMax);
  } catch {
    return 'an error that cannot be shown as text';
  }
}

/** Returns a `MailroomError` unchanged; wraps any other error, with its code or name as the code and the error as the cause. */
export function asMailroomError(error: unknown): MailroomError {
  if (error instanceof MailroomError) return error;
  return explainedBy(new MailroomError(errorCode(error), errorMessage(error), { cause: error }), undefined);
}

function hasMessage(error: unknown): error is { message: string } {
  return (
    typeof error === 'object' &&
    error !== null &&
    typeof (error as { message?: unknown }).message === 'string'
  );
}
