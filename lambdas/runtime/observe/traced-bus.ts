import { MailroomError } from '../base/errors.ts';
import type { Bus } from '../bus/event-bus.ts';
import { publishSpan } from './message-spans.ts';
import { inSpan, type SafeTracer } from './tracer.ts';

/**
 * A bus whose calls are spans. Without a tracer, it is the bus itself.
 *
 * @param busName - the name or ARN of the bus
 */
export function tracedBus(bus: Bus, tracer: SafeTracer, busName: string): Bus {
  if (!tracer.isOn) return bus;
  return {
    put: (entries, timeoutMs) =>
      inSpan(tracer, publishSpan(busName, entries), async (span) => {
        const results = await bus.put(entries, timeoutMs);
        const refused = results.find(({ ok }) => !ok);
        if (refused?.ok === false) span.fail(new MailroomError(refused.code, refused.message));
        return results;
      }),
  };
}
