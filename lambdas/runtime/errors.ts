import { DELAY_MAX_MS } from './consume/retry-schedule.ts';
import type { MailroomErrorCode } from './error-codes.ts';
import type { Item } from './store/table.ts';

/** Marks the errors of every copy of this module: a bundle may hold two. */
const MAILROOM_ERROR = Symbol.for('cdk-mailroom.error');

/**
 * The base class of the errors that Mailroom throws. Recognize them with {@link isMailroomError}, not with `instanceof`: a bundle
 * may hold two copies of a class.
 */
export class MailroomError extends Error {
  /** One of {@link MailroomErrorCode}, or the code that a handler gave its `PoisonMessage`. */
  readonly code: string;
  /** After how many milliseconds a second try makes sense; absent where waiting does not help. */
  readonly retryAfterMs: number | undefined;
  readonly [MAILROOM_ERROR] = true;

  constructor(code: string, message: string, options?: ErrorOptions & { readonly retryAfterMs?: number }) {
    super(message, options);
    this.name = 'MailroomError';
    this.code = code;
    this.retryAfterMs = options?.retryAfterMs;
  }
}

/** The classes that decide what happens to a message. A `PoisonMessage` may carry any code, and stays one. */
const OUTCOMES: Readonly<Partial<Record<MailroomErrorCode, string>>> = {
  ALREADY_PROCESSED: 'AlreadyProcessed',
  RETRY_LATER: 'RetryLater',
};

/** The class of each error that carries more than its code, by code: what {@link isMailroomError} narrows to. */
export interface MailroomErrorOfCode {
  CONDITION_FAILED: ConditionFailed;
  RETRY_LATER: RetryLater;
  TRANSACTION_CANCELLED: TransactionCancelled;
}

/**
 * Whether an error is one of Mailroom's, whichever copy of the package threw it; with a code, whether it is this one, also when
 * a table of your own throws it.
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
    return false; // a member that must not be read
  }
}

/**
 * Thrown by a consumer's handler: this message can never succeed, do not try it again. The message is rejected
 * (its inbox row says why) and goes to the dead-letter queue by SQS's own route.
 *
 * @example
 * ```ts
 * if (order.currency !== 'EUR') throw new PoisonMessage(`currency ${order.currency} is not supported`);
 * ```
 */
export class PoisonMessage extends MailroomError {
  /** The HTTP status this outcome stands for. */
  readonly statusCode = 422;

  constructor(message: string, options?: ErrorOptions & { code?: string }) {
    super(options?.code ?? 'POISON_MESSAGE', message, options);
    this.name = 'PoisonMessage';
  }
}

/**
 * Thrown by a consumer's handler: the work of this message is done already, by another way than this inbox.
 * The message is recorded as processed. It is the handler's own 409; a 409 that some other service answered is
 * not this and must not be passed off as it.
 *
 * @example
 * ```ts
 * if (await legacy.wasImported(event.eventId)) throw new AlreadyProcessed('imported by the legacy job');
 * ```
 */
export class AlreadyProcessed extends MailroomError {
  /** The HTTP status this outcome stands for. */
  readonly statusCode = 409;

  constructor(message: string, options?: ErrorOptions) {
    super('ALREADY_PROCESSED', message, options);
    this.name = 'AlreadyProcessed';
  }
}

/** A delay, as {@link RetryLater} takes it: the members are added up. */
export interface RetryDelay {
  /** @default 0 */
  readonly seconds?: number | undefined;
  /** @default 0 */
  readonly minutes?: number | undefined;
  /** @default 0 */
  readonly hours?: number | undefined;
}

/**
 * Thrown by a consumer's handler: try this message again after a delay of the handler's choice, such as the one that a
 * provider asked for. It counts as an attempt; only the delay differs from that of any other error.
 *
 * @example
 * ```ts
 * if (response.status === 429) throw new RetryLater({ seconds: Number(response.headers.get('retry-after')) }, 'rate limited');
 * ```
 */
export class RetryLater extends MailroomError {
  declare readonly retryAfterMs: number;

  /**
   * @param after - milliseconds, or hours, minutes and seconds; 11 hours at most
   * @param cause - why: an error or a text; it is stored and logged in place of this one
   * @throws `BAD_DELAY` when the delay is not a number from 0 to 11 hours
   */
  constructor(after: number | RetryDelay, cause?: unknown) {
    const afterMs = delayMs(after);
    if (!(afterMs >= 0 && afterMs <= DELAY_MAX_MS)) {
      throw new MailroomError(
        'BAD_DELAY',
        `RetryLater was given a delay of ${afterMs} ms; allowed are 0 to ${DELAY_MAX_MS} (11 hours). SQS hides a message for 12 hours at most.`,
        { cause },
      );
    }
    super('RETRY_LATER', cause === undefined ? `Retry in ${afterMs} ms` : errorMessage(cause), {
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

/** A single conditional write was refused. `item` is the row as it stood, absent when there was none. */
export class ConditionFailed extends MailroomError {
  /** The row as it stood; absent when there was none. */
  readonly item: Item | undefined;

  constructor(item: Item | undefined, options?: ErrorOptions) {
    super('CONDITION_FAILED', 'The condition of the write was not met', options);
    this.name = 'ConditionFailed';
    this.item = item;
  }
}

/** Why one action of a cancelled transaction was refused. */
export interface CancellationReason {
  /** DynamoDB's reason code: `None`, `ConditionalCheckFailed`, `TransactionConflict`, `ThrottlingError`, … */
  readonly code: string;
  /** What DynamoDB says of it; absent where it says nothing. */
  readonly message?: string | undefined;
  /** The row as it stood, where the action asked for it and a row existed. */
  readonly item?: Item | undefined;
}

/** A transaction was cancelled as a whole; `reasons` are in the order of its actions. */
export class TransactionCancelled extends MailroomError {
  /** One for each action of the transaction, in order. */
  readonly reasons: readonly CancellationReason[];

  constructor(reasons: readonly CancellationReason[], options?: ErrorOptions) {
    super('TRANSACTION_CANCELLED', `The transaction was cancelled: ${refusals(reasons)}`, options);
    this.name = 'TransactionCancelled';
    this.reasons = reasons;
  }
}

/** Which actions were refused and why, counted from 1 in the order of the transaction. */
function refusals(reasons: readonly CancellationReason[]): string {
  const refused = reasons.flatMap(({ code, message }, i) => {
    if (code === 'None') return [];
    // What DynamoDB says of a condition that was not met is no more than its code says.
    const said = code === 'ConditionalCheckFailed' || !message ? '' : ` (${message})`;
    return [`action ${i + 1} of ${reasons.length} by ${code}${said}`];
  });
  return refused.length > 0 ? refused.join(', ') : 'DynamoDB gave no reason';
}

/** This worker no longer holds the message's lease: another claim, or an operator, has taken it over. */
export class FenceLost extends MailroomError {
  constructor(message: string, options?: ErrorOptions) {
    super('FENCE_LOST', message, options);
    this.name = 'FenceLost';
  }
}

/** The form of a code. Any other text may be data, and codes are stored and logged. */
const CODE = /^[A-Za-z][\w.:$#-]{0,99}$/;

/** The code of an error, whoever threw it: its `code`, else its `name`, else `UNKNOWN`. A text of another form is not a code. */
export function errorCode(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'UNKNOWN';
  try {
    const { code, name } = error as { code?: unknown; name?: unknown };
    return (
      [code, name].find((text): text is string => typeof text === 'string' && CODE.test(text)) ?? 'UNKNOWN'
    );
  } catch {
    return 'UNKNOWN'; // a member that must not be read
  }
}

/** The message of an error, whoever threw it. @param charsMax - it is cut there @default 1,000 */
export function errorMessage(error: unknown, charsMax = 1_000): string {
  try {
    const message = error instanceof Error || hasMessage(error) ? error.message : error;
    return String(message).slice(0, charsMax);
  } catch {
    return 'an error that cannot be shown as text';
  }
}

/** The error as one of ours: itself, or one with its name as the code, and itself as the cause. */
export function asMailroomError(error: unknown): MailroomError {
  if (error instanceof MailroomError) return error;
  return new MailroomError(errorCode(error), errorMessage(error), { cause: error });
}

/** Whether an error is a {@link PoisonMessage}. A downstream 422 is not one. */
export function isPoison(error: unknown): boolean {
  return error instanceof Error && error.name === 'PoisonMessage';
}

/**
 * What kind of failure this is, for listing failures by cause: the error's code and its message with everything
 * that differs from event to event (ids, numbers, quoted values) replaced.
 *
 * @returns at most 240 characters, e.g. `BankError: bank answered # for order #`
 *
 * @example
 * ```ts
 * fingerprint(new Error('order 42 not found')); // 'Error: order # not found'
 * ```
 */
export function fingerprint(error: unknown): string {
  const normalised = errorMessage(error)
    .replace(/"[^"]*"|'[^']*'|`[^`]*`/g, '#')
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '#')
    .replace(/\b(?=[0-9a-z_-]*\d)[0-9a-z_-]+\b/gi, '#')
    .replace(/\s+/g, ' ')
    .trim();
  return `${errorCode(error)}: ${normalised}`.slice(0, 240);
}

function hasMessage(error: unknown): error is { message: string } {
  return (
    typeof error === 'object' &&
    error !== null &&
    typeof (error as { message?: unknown }).message === 'string'
  );
}
