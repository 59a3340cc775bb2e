import { createConsumer } from '../../../lambdas/runtime/consume/consumer.ts';
import type { Handler } from '../../../lambdas/runtime/consume/handler.ts';
import type { Envelope } from '../../../lambdas/runtime/event.ts';
import { mintEventId } from '../../../lambdas/runtime/event-id.ts';
import { inboxKey, rejectedKey } from '../../../lambdas/runtime/rows.ts';
import { lambdaContext } from '../../../lambdas/runtime/testing.ts';
import { type bench, consumerConfig, runThrough } from '../../support/runtime-bench.ts';

/** What {@link bench} puts on a consumer's bench. */
export type Parts = ReturnType<typeof bench>;

export const CONSUMER = consumerConfig.consumer;

/** A consumer on the bench, its queue, and one round of what Lambda does. */
export function consumer(
  parts: Parts,
  handlers: readonly Handler[],
  table = parts.table,
  change: Partial<typeof consumerConfig> = {},
) {
  const { queue, clock, telemetry } = parts;
  const config = { ...consumerConfig, ...change };
  const handle = createConsumer({ config, table, queue, handlers, clock, telemetry });
  return {
    handle,
    /** Delivers what is visible to one invocation of the function. */
    deliver: (timeoutMs = 30_000) =>
      runThrough(clock, queue.deliver(handle, 10, lambdaContext({ clock, timeoutMs }))),
    /** Delivers until the queue is empty, or `rounds` are over. */
    async drain(rounds = 30): Promise<void> {
      for (let round = 0; round < rounds && queue.messages().length > 0; round += 1) {
        await runThrough(clock, queue.deliver(handle, 10, lambdaContext({ clock })));
        const next = Math.min(...queue.messages().map((message) => message.visibleAt));
        if (Number.isFinite(next)) await clock.advance(Math.max(1, next - clock.now()));
      }
    },
  };
}

/** What a message says of one event. */
export function envelope(parts: Parts, change: Partial<Envelope> = {}): Envelope {
  const eventId = mintEventId(parts.clock.now(), 2);
  return {
    eventId,
    type: 'ThingHappened',
    version: 2,
    aggregateType: 'Thing',
    aggregateId: '1',
    occurredAt: parts.clock.now(),
    correlationId: 'chain',
    data: { n: 1 },
    ...change,
  };
}

/** The body of an SQS message as EventBridge sends it. */
export const body = (detail: unknown) => ({
  id: 'e',
  'detail-type': 'ThingHappened',
  source: 'things',
  detail,
});

/** Puts an event into the queue. */
export function send(parts: Parts, change: Partial<Envelope> = {}): Envelope {
  const sent = envelope(parts, change);
  parts.queue.send(body(sent));
  return sent;
}

export const inboxRow = (parts: Parts, event: Envelope) =>
  parts.memory.item(inboxKey(CONSUMER, event.eventId));
export const pointer = (parts: Parts, event: Envelope) =>
  parts.memory.item(rejectedKey(CONSUMER, event.eventId));
/** A row of the service, which must not be there yet. */
export const domainRow = {
  Put: { Item: { PK: 'THING#1', SK: 'THING', schema: 1 }, ConditionExpression: 'attribute_not_exists(PK)' },
};
