import { type BatchHandler, takesBatches } from './batch-handler.ts';
import { runSet } from './batch-run.ts';
import type { ConsumerContext } from './consumer-context.ts';
import type { Delivery } from './delivery.ts';
import { type Handlers, handlerOf } from './message.ts';
import { type MessageOutcome, putBack } from './message-outcome.ts';
import { begin, receive, work } from './receive.ts';

/**
 * Processes the messages of an invocation: those of a batch handler together, each other one on its own. It never throws.
 *
 * @returns the outcome of each, in the order of `deliveries`
 */
export function workOnAll(
  ctx: ConsumerContext,
  deliveries: readonly Delivery[],
  handlers: Handlers,
): Promise<MessageOutcome>[] {
  const alone = deliveries.length === 1;
  const works = new Map<Delivery, Promise<MessageOutcome>>();
  for (const [handler, { first, repeats }] of setsOf(ctx, deliveries, handlers)) {
    if (first.length + repeats.length === 1) continue;
    const ended = workOnSet(ctx, handler, first, handlers);
    for (const delivery of first)
      works.set(
        delivery,
        ended.then((outcomeOf) => outcomeOf(delivery)),
      );
    for (const delivery of repeats)
      works.set(
        delivery,
        ended.then(() => work(ctx, delivery, handlers, false, true)),
      );
  }
  return deliveries.map((delivery) => works.get(delivery) ?? work(ctx, delivery, handlers, alone));
}

/** The messages of a handler. A transaction has one action for each row, so the repeats of an event come after it, and may find its row. */
interface DeliveredSet {
  readonly first: Delivery[];
  readonly repeats: Delivery[];
}

/** A message that was received before is not among them: it may have killed its process, and is claimed on its own. */
function setsOf(
  { config }: ConsumerContext,
  deliveries: readonly Delivery[],
  handlers: Handlers,
): Map<BatchHandler, DeliveredSet> {
  const sets = new Map<BatchHandler, DeliveredSet>();
  for (const delivery of deliveries) {
    const handler = batchHandlerOf(config.consumer, delivery, handlers);
    if (handler === undefined || delivery.receives > 1) continue;
    const set = sets.get(handler) ?? { first: [], repeats: [] };
    sets.set(handler, set);
    const { eventId } = delivery.message;
    (set.first.some(({ message }) => message.eventId === eventId) ? set.repeats : set.first).push(delivery);
  }
  return sets;
}

function batchHandlerOf(
  consumer: string,
  { content }: Delivery,
  handlers: Handlers,
): BatchHandler | undefined {
  if (!('envelope' in content)) return undefined;
  try {
    const handler = handlerOf(handlers, consumer, content);
    return takesBatches(handler) ? handler : undefined;
  } catch {
    return undefined; // rejected on its own
  }
}

async function workOnSet(
  ctx: ConsumerContext,
  handler: BatchHandler,
  deliveries: readonly Delivery[],
  handlers: Handlers,
): Promise<(delivery: Delivery) => MessageOutcome> {
  const messages = deliveries.map((delivery) => begin(ctx, delivery));
  try {
    const alone = (message: (typeof messages)[number], mayHaveRow: boolean) =>
      receive(message, handlers, false, mayHaveRow);
    const outcomes = await runSet(ctx, { handler, messages, alone });
    return (delivery) => outcomes[deliveries.indexOf(delivery)] ?? putBack();
  } finally {
    for (const { span } of messages) span.end();
  }
}
