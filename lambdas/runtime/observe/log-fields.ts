import type { LogFields, Telemetry } from './telemetry.ts';

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
