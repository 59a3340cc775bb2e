import { Logger } from '@aws-lambda-powertools/logger';
import { DOCUMENTATION_URL } from '../base/documentation.ts';
import { errorMessage } from '../base/errors.ts';

/** A logger from which Mailroom creates its own: Powertools' `Logger` of any 2.x version. */
export interface ParentLogger {
  /** Creates a logger with the same level, format and keys. */
  createChild(options: {
    readonly jsonReplacerFn: (key: string, value: unknown) => unknown;
    readonly persistentKeys: Readonly<Record<string, string | number>>;
  }): Pick<Logger, 'debug' | 'info' | 'warn' | 'error'> &
    Partial<Pick<Logger, 'addContext' | 'refreshSampleRateCalculation'>>;
}

/**
 * A Powertools JSON logger that writes only the name, code, message, stack, `help` and causes of an error. By default, Powertools also
 * writes an error's other properties, which may hold a whole row or request: DynamoDB errors carry the item whose condition
 * failed, and HTTP client errors carry the request body. Payloads must not appear in logs.
 *
 * @param service - the Powertools service name
 * @param options.logger - the parent logger, which also determines the service name @default a new logger
 * @param options.logFields - fields of every log line @default none
 *
 * @example
 * ```ts
 * createLogger('payments').error('The charge failed', { eventId, error });
 * ```
 */
export function createLogger(
  service: string,
  {
    logger,
    logFields = {},
  }: {
    readonly logger?: ParentLogger | undefined;
    readonly logFields?: Readonly<Record<string, string | number>> | undefined;
  } = {},
): ReturnType<ParentLogger['createChild']> {
  const options = { jsonReplacerFn: withoutBaggage, persistentKeys: { ...logFields } };
  return logger?.createChild(options) ?? new Logger({ ...options, serviceName: service });
}

/** The maximum number of nested causes that are logged: `JSON.stringify` overflows the stack on a very long chain. */
const CAUSES_MAX = 10;

/** Copies the loggable properties of an error. */
function bare(error: Error, causesMax: number): object {
  const { name, message, stack, cause } = error;
  const { code, help } = error as { code?: unknown; help?: unknown };
  const inner = cause instanceof Error && causesMax > 0 ? { cause: bare(cause, causesMax - 1) } : {};
  const own = typeof help === 'string' && help.startsWith(DOCUMENTATION_URL) && { help };
  const shown = { name, ...(typeof code === 'string' && { code }), message, ...own, stack, ...inner };
  BARE.add(shown);
  return shown;
}

/** The results of {@link bare}, because a replacer also receives those. */
const BARE = new WeakSet<object>();

/** A `JSON.stringify` replacer that reduces every error in a log line to its loggable properties. */
function withoutBaggage(key: string, value: unknown): unknown {
  if (value instanceof Error) return bare(value, CAUSES_MAX);
  // Any value can be thrown, and an error may define `toJSON`: for such values, only the message is shown.
  const thrown =
    (key === 'error' || key === 'cause') && typeof value === 'object' && value !== null && !BARE.has(value);
  return thrown ? { message: errorMessage(value) } : value;
}
