import { Logger } from '@aws-lambda-powertools/logger';
import { errorMessage } from './errors.ts';

/**
 * A logger by Powertools, as JSON, that shows of an error its name, code, message, stack and causes, and nothing else. By
 * default Powertools also writes whatever hangs on an error, and that may be a whole row or a request: DynamoDB's refusals
 * carry the item that refused, HTTP clients the body that was sent. Payloads do not belong in logs.
 *
 * @param service - the Powertools service name
 *
 * @example
 * ```ts
 * createLogger('payments').error('The charge failed', { eventId, error });
 * ```
 */
export function createLogger(service: string): Logger {
  return new Logger({ serviceName: service, jsonReplacerFn: withoutBaggage });
}

/** The most causes of an error that are logged: a longer chain would end `JSON.stringify` on its stack. */
const CAUSES_MAX = 10;

/** What is shown of an error. */
function bare(error: Error, causesMax: number): object {
  const { name, message, stack, cause } = error;
  const { code } = error as { code?: unknown };
  const inner = cause instanceof Error && causesMax > 0 ? { cause: bare(cause, causesMax - 1) } : {};
  const shown = { name, ...(typeof code === 'string' && { code }), message, stack, ...inner };
  BARE.add(shown);
  return shown;
}

/** What {@link bare} made: a replacer is given it, too. */
const BARE = new WeakSet<object>();

/** What `JSON.stringify` is given in place of an error, wherever in a log line one turns up. */
function withoutBaggage(key: string, value: unknown): unknown {
  if (value instanceof Error) return bare(value, CAUSES_MAX);
  // Anything can be thrown, and an error may turn itself into JSON: of those, too, no more than a message is shown.
  const thrown =
    (key === 'error' || key === 'cause') && typeof value === 'object' && value !== null && !BARE.has(value);
  return thrown ? { message: errorMessage(value) } : value;
}
