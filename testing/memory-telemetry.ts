import type { MetricName, Telemetry } from '../lambdas/runtime/observe/telemetry.ts';

/** One line of a {@link MemoryTelemetry}'s log. */
export interface LogLine {
  /** The severity. */
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  /** The additional fields. */
  readonly extra: unknown;
}

/** A {@link Telemetry} that records everything in memory, for assertions. */
export interface MemoryTelemetry extends Telemetry {
  /** The sum of a counter, or the last value of a gauge; 0 if it was never recorded. */
  counted(name: MetricName): number;
  /** Every duration recorded under a name, in milliseconds, oldest first. */
  durations(name: MetricName): readonly number[];
  /** Every logged line, oldest first. */
  lines(): readonly LogLine[];
}

/**
 * Creates a {@link MemoryTelemetry}: tests stay quiet, and can assert on metrics and logs.
 *
 * @example
 * ```ts
 * const telemetry = memoryTelemetry();
 * await createConsumer({ config, table, queue, handlers, telemetry })(event, lambdaContext());
 * expect(telemetry.counted('MessagesProcessed')).toBe(1);
 * ```
 */
export function memoryTelemetry(): MemoryTelemetry {
  const counters = new Map<MetricName, number>();
  const durations = new Map<MetricName, number[]>();
  const lines: LogLine[] = [];
  const log = (level: LogLine['level']) => {
    return (message: unknown, ...extra: unknown[]) => {
      lines.push({ level, message: String(message), extra: extra[0] });
    };
  };
  return {
    log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
    count: (name, value = 1) => {
      counters.set(name, (counters.get(name) ?? 0) + value);
    },
    gauge: (name, value) => {
      counters.set(name, value);
    },
    duration: (name, ms) => {
      const known = durations.get(name);
      if (known === undefined) durations.set(name, [ms]);
      else known.push(ms);
    },
    flush: () => {},
    counted: (name) => counters.get(name) ?? 0,
    durations: (name) => [...(durations.get(name) ?? [])],
    lines: () => lines,
  };
}
