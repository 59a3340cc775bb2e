import { errorCode, errorMessage } from '../../lambdas/runtime/base/errors.ts';
import { UNSTABLE_EFFECTS } from '../../lambdas/runtime/consume/unstable-effects.ts';
import type { Telemetry } from '../../lambdas/runtime/observe/telemetry.ts';
import { memoryTelemetry } from '../memory-telemetry.ts';

/** Telemetry that treats a report of unstable effects as a violation. */
export function watchedTelemetry(violate: (what: string) => void): Telemetry {
  const memory = memoryTelemetry();
  return {
    ...memory,
    log: {
      ...memory.log,
      error: (_message, ...[extra]) => {
        const error = (extra as { readonly error?: unknown } | undefined)?.error;
        if (errorCode(error) === UNSTABLE_EFFECTS) violate(errorMessage(error));
      },
    },
  };
}
