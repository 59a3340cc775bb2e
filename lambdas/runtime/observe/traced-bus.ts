import { MailroomError } from '../base/errors.ts';
import type { Bus } from '../bus/event-bus.ts';
import { publishSpan } from './message-spans.ts';
import { createTracer, inSpan, isTraced } from './tracer.ts';

/**
 * A bus whose calls are spans.
 *
 * @param busName - the name or ARN of the bus
 */
export function tracedBus(bus: Bus, busName: string): Bus {
  const tracer = createTracer();
  return {
    put: async (entries, timeoutMs) => {
      // The description of a span parses every envelope.
      if (!isTraced()) return bus.put(entries, timeoutMs);
      return inSpan(tracer, publishSpan(busName, entries), async (span) => {
        const results = await bus.put(entries, timeoutMs);
        const refused = results.find(({ ok }) => !ok);
        if (refused?.ok === false) span.fail(new MailroomError(refused.code, refused.message));
        return results;
      });
    },
  };
}
