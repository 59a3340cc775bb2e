import { MailroomError } from '../errors.ts';
import { publishSpan } from '../message-spans.ts';
import { inSpan, type SafeTracing } from '../tracing.ts';
import type { Bus } from './event-bus.ts';

/**
 * A bus whose calls are spans. Without tracing, it is the bus itself.
 *
 * @param busName - the name or ARN of the bus
 */
export function tracedBus(bus: Bus, tracing: SafeTracing, busName: string): Bus {
  if (!tracing.isOn) return bus;
  return {
    put: (entries, timeoutMs) =>
      inSpan(tracing, publishSpan(busName, entries), async (span) => {
        const results = await bus.put(entries, timeoutMs);
        const refused = results.find(({ ok }) => !ok);
        if (refused?.ok === false) span.fail(new MailroomError(refused.code, refused.message));
        return results;
      }),
  };
}
