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

/** What `JSON.stringify` is given in place of an error, wherever in a log line one turns up. */
function withoutBaggage(key: string, value: unknown): unknown {
  if (value instanceof Error) {
    const { name, message, stack, cause } = value;
    const { code } = value as { code?: unknown };
    const shown = typeof code === 'string' ? { name, code, message, stack } : { name, message, stack };
    return cause instanceof Error ? { ...shown, cause } : shown;
  }
  // Anything can be thrown, and an error may turn itself into JSON: of those, too, no more than a message is shown.
  const thrown = (key === 'error' || key === 'cause') && typeof value === 'object' && value !== null;
  return thrown ? { message: errorMessage(value) } : value;
}
