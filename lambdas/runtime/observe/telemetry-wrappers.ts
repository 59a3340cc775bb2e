import type { LogFields, Telemetry } from './telemetry.ts';

/**
 * Calls a port that must not fail what it observes. Returns what the call returns, or `undefined` if it throws.
 *
 * @example
 * ```ts
 * attempted(() => span.end());
 * ```
 */
export function attempted<T>(call: () => T): T | undefined {
  try {
    const result = call();
    // A port may implement a method with an async function: its unhandled rejection would end the process.
    if (result instanceof Promise) result.catch(() => {});
    return result;
  } catch {
    return undefined;
  }
}

/**
 * Telemetry that cannot throw: a commit whose metric failed would be reported as failed, and made again by its caller.
 *
 * @example
 * ```ts
 * const telemetry = safeTelemetry(deps.telemetry);
 * ```
 */
export function safeTelemetry(telemetry: Telemetry): Telemetry {
  const { log } = telemetry;
  const safe =
    (level: keyof typeof log): (typeof log)[typeof level] =>
    (message, ...extra) =>
      void attempted(() => log[level](message, ...extra));
  return {
    log: { debug: safe('debug'), info: safe('info'), warn: safe('warn'), error: safe('error') },
    startInvocation: (context) => void attempted(() => telemetry.startInvocation?.(context)),
    count: (...call) => void attempted(() => telemetry.count(...call)),
    gauge: (...call) => void attempted(() => telemetry.gauge(...call)),
    duration: (...call) => void attempted(() => telemetry.duration(...call)),
    flush: () => void attempted(() => telemetry.flush()),
  };
}

/** Telemetry whose log lines carry additional fields. */
export function withLogFields(telemetry: Telemetry, fields: LogFields): Telemetry {
  // Mailroom passes one object of fields, or nothing.
  return withExtras(telemetry, (extra) => ({ ...fields, ...(extra[0] as object | undefined) }));
}

/** Telemetry that changes the fields of each log line. */
export function withExtras(telemetry: Telemetry, change: (extra: unknown[]) => object): Telemetry {
  const { log } = telemetry;
  const changed =
    (level: keyof typeof log): (typeof log)[typeof level] =>
    (message, ...extra) =>
      log[level](message, { ...change(extra) });
  return {
    log: { debug: changed('debug'), info: changed('info'), warn: changed('warn'), error: changed('error') },
    // Not copied with a spread: the methods may be those of a class.
    startInvocation: (context) => telemetry.startInvocation?.(context),
    count: (...call) => telemetry.count(...call),
    gauge: (...call) => telemetry.gauge(...call),
    duration: (...call) => telemetry.duration(...call),
    flush: () => telemetry.flush(),
  };
}
