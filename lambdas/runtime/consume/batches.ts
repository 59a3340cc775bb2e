import { type BatchHandler, takesBatches } from './batch-handler.ts';
import { runSet } from './batch-run.ts';
import type { ConsumerContext, Received } from './consumer-context.ts';
import type { Delivery } from './delivery.ts';
import { type Handlers, handlerOf } from './message.ts';
import type { MessageOutcome } from './message-outcome.ts';
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
    const { outcomes, whole } = workOnSet(ctx, handler, first, handlers);
    // A defect that ends the whole fails the invocation, rather than to leave it waiting.
    for (const [delivery, outcome] of outcomes)
      works.set(delivery, Promise.race([outcome, whole.then(() => outcome)]));
    for (const delivery of repeats)
      works.set(
        delivery,
        whole.then(() => work(ctx, delivery, handlers, false, true)),
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

/** Begins the work on a set. A message that has ended does not wait for the others: it is hidden for its delay immediately. */
function workOnSet(
  ctx: ConsumerContext,
  handler: BatchHandler,
  deliveries: readonly Delivery[],
  handlers: Handlers,
) {
  const ends = new Map<Received, (outcome: MessageOutcome) => void>();
  const outcomes = new Map<Delivery, Promise<MessageOutcome>>();
  for (const delivery of deliveries) {
    const message = begin(ctx, delivery);
    outcomes.set(delivery, new Promise((resolve) => ends.set(message, resolve)));
  }
  const whole = runSet(ctx, {
    handler,
    messages: [...ends.keys()],
    alone: (message, mayHaveRow) => receive(message, handlers, false, mayHaveRow),
    ended: (message, outcome) => {
      message.span.end();
      ends.get(message)?.(outcome);
    },
  });
  return { outcomes, whole };
}
