import { errorCode, errorMessage, isMailroomError } from '../base/errors.ts';
import { fingerprint } from '../base/fingerprint.ts';
import type { Telemetry } from './telemetry.ts';
import { withExtras } from './telemetry-wrappers.ts';

/**
 * Redacts the text of an error before it is stored and logged. It receives the full message of whatever a handler threw and the
 * error itself, and is called again for its name, its code and each cause: a name or code that it changes is left out. It must not throw: if it does, the text is not stored.
 *
 * @example
 * ```ts
 * const redact: Redact = (text) => text.replace(/\b\d{12,19}\b/g, '#');
 * ```
 */
export type Redact = (text: string, error: unknown) => string;

/** Stored and logged instead of text that could not be redacted. */
const NOT_REDACTED = 'The error text is hidden: the redact option threw, or did not return a string';

/** The maximum number of nested causes that are logged. */
const CAUSES_MAX = 10;

/** The reason for a failure as rows store it: at most 1,000 characters, and a fingerprint of at most 240. */
export function storedCause(error: unknown, redact: Redact | undefined) {
  const shown = redact === undefined ? error : redactedError(error, redact);
  return { lastError: errorMessage(shown), fingerprint: fingerprint(shown) };
}

/** Telemetry that redacts error text before it is logged. */
export function redactingTelemetry(telemetry: Telemetry, redact: Redact | undefined): Telemetry {
  if (redact === undefined) return telemetry;
  return withExtras(telemetry, ([extra]) => withoutText(extra, redact));
}

/** Redacts every error among the members of a log line. Mailroom passes them as one object, with the thrown value as `error`. */
function withoutText(extra: unknown, redact: Redact): object {
  if (typeof extra !== 'object' || extra === null) return {};
  if (extra instanceof Error) return redactedError(extra, redact);
  const members = Object.entries(extra).map(([name, value]) => [
    name,
    value instanceof Error || name === 'error' ? redactedError(value, redact) : value,
  ]);
  return Object.fromEntries(members);
}

/** Copies an error or any other thrown value: its name and code, the calls of its stack, and redacted texts. */
export function redactedError(error: unknown, redact: Redact, depth = 0): Error {
  const { name: given, stack, cause } = membersOf(error);
  const name = redactedCode(given, error, redact) ?? 'Error';
  const message = redactedText(errorMessage(error, Number.POSITIVE_INFINITY), error, redact);
  const inner =
    cause instanceof Error && depth < CAUSES_MAX ? redactedError(cause, redact, depth + 1) : undefined;
  const copy: Error & { code?: string; help?: string | undefined } = new Error(
    message,
    inner && { cause: inner },
  );
  copy.name = name;
  copy.stack = `${name}: ${message}${callsOf(stack, errorMessage(error, Number.POSITIVE_INFINITY))}`;
  const code = errorCode(error);
  if (code !== given && code !== 'UNKNOWN') copy.code = redactedCode(code, error, redact);
  if (isMailroomError(error)) copy.help = error.help;
  return copy;
}

/** A name or code is usually a constant, which redaction leaves as it is. What it changes to other text is left out. */
function redactedCode(code: string, error: unknown, redact: Redact): string | undefined {
  const text = redactedText(code, error, redact);
  return text === code ? code : undefined;
}

function redactedText(shown: string, error: unknown, redact: Redact): string {
  try {
    const text: unknown = redact(shown, error);
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
    return none; // a getter threw
  }
}

/**
 * Returns the calls of a stack: the part after the message, because the message may contain lines that look like calls. An error
 * whose message was changed has a stack with the old one, so no part of it is returned.
 */
function callsOf(stack: string, message: string): string {
  const [head = ''] = /^[\w$]+(?: \[\w+\])?/.exec(stack) ?? [];
  const start = message === '' ? head : `${head}: ${message}`;
  if (!stack.startsWith(`${start}\n    at `)) return '';
  return stack
    .slice(start.length)
    .split('\n')
    .filter((line) => line.startsWith('    at '))
    .map((line) => `\n${line}`)
    .join('');
}
