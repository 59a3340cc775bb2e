import { errorCode, errorMessage, fingerprint } from './errors.ts';
import type { Telemetry } from './telemetry.ts';

/**
 * Turns the text of an error into what may be stored and logged. It is given the message of whatever a handler threw, whole,
 * and the error itself; of an error with causes, each of them. It must not throw: where it does, no text is stored.
 *
 * @example
 * ```ts
 * const redact: Redact = (text) => text.replace(/\b\d{12,19}\b/g, '#');
 * ```
 */
export type Redact = (text: string, error: unknown) => string;

/** What is stored and logged in place of a text whose redaction failed. */
const NOT_REDACTED = 'The error is not shown: the redact option threw, or returned no text';

/** The most causes of an error that are logged. */
const CAUSES_MAX = 10;

/** Why a message failed, as rows hold it: at most 1,000 characters, and a fingerprint of at most 240. */
export function storedCause(error: unknown, redact: Redact | undefined) {
  const told = redact === undefined ? error : redactedError(error, redact);
  return { lastError: errorMessage(told), fingerprint: fingerprint(told) };
}

/** Telemetry that logs no text of an error before it was redacted. */
export function redactingTelemetry(telemetry: Telemetry, redact: Redact | undefined): Telemetry {
  if (redact === undefined) return telemetry;
  const { log } = telemetry;
  type Line = (typeof log)['error'];
  const redacted = (line: Line): Line => {
    return (message, ...extra) =>
      line(message, ...(extra.map((one) => withoutText(one, redact)) as typeof extra));
  };
  return {
    ...telemetry,
    log: {
      debug: redacted(log.debug.bind(log)),
      info: redacted(log.info.bind(log)),
      warn: redacted(log.warn.bind(log)),
      error: redacted(log.error.bind(log)),
    },
  };
}

/** A log line's members, with every error among them redacted. Mailroom logs what was thrown as `error`. */
function withoutText(extra: unknown, redact: Redact): unknown {
  if (typeof extra !== 'object' || extra === null) return extra;
  if (extra instanceof Error) return redactedError(extra, redact);
  const members = Object.entries(extra).map(([name, value]) => [
    name,
    value instanceof Error || name === 'error' ? redactedError(value, redact) : value,
  ]);
  return Object.fromEntries(members);
}

/** A copy of an error, or of whatever was thrown: its name and code, its stack's calls, and redacted texts. */
function redactedError(error: unknown, redact: Redact, depth = 0): Error {
  const { name, stack, cause } = membersOf(error);
  const message = redactedText(error, redact);
  const inner =
    cause instanceof Error && depth < CAUSES_MAX ? redactedError(cause, redact, depth + 1) : undefined;
  const copy: Error & { code?: string } = new Error(message, inner && { cause: inner });
  copy.name = name;
  copy.stack = `${name}: ${message}${callsOf(stack, errorMessage(error, Number.POSITIVE_INFINITY))}`;
  const code = errorCode(error);
  if (code !== name && code !== 'UNKNOWN') copy.code = code;
  return copy;
}

function redactedText(error: unknown, redact: Redact): string {
  try {
    const text: unknown = redact(errorMessage(error, Number.POSITIVE_INFINITY), error);
    return typeof text === 'string' ? text : NOT_REDACTED;
  } catch {
    return NOT_REDACTED;
  }
}

function membersOf(error: unknown): { name: string; stack: string; cause?: unknown } {
  const none = { name: 'Error', stack: '' };
  try {
    return error instanceof Error ? { name: error.name, stack: error.stack ?? '', cause: error.cause } : none;
  } catch {
    return none; // a member that must not be read
  }
}

/** The calls of a stack: what follows the message, which may hold lines that look like calls. */
function callsOf(stack: string, message: string): string {
  const at = stack.indexOf(message);
  const lines = at < 0 ? [] : stack.slice(at + message.length).split('\n');
  return lines
    .filter((line) => line.startsWith('    at '))
    .map((line) => `\n${line}`)
    .join('');
}
