import { attempted } from '../base/attempted.ts';
import type { Telemetry } from './telemetry.ts';

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
