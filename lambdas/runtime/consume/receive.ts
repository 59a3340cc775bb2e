import type { ProcessingConfig } from '../base/consumer-config.ts';
import { MailroomError } from '../base/errors.ts';
import { HEARTBEAT } from '../events/heartbeat-event.ts';
import { forgottenBecause, wasSettledUnread } from '../inbox/inbox-history.ts';
import { processSpan } from '../observe/message-spans.ts';
import { isTraced, NO_SPAN } from '../observe/tracer.ts';
import type { Around } from './around.ts';
import { checkBatches } from './batch-handler.ts';
import { claimAndRun } from './claimed-run.ts';
import { type ConsumerContext, envelopeOf, type Received, receivedOf } from './consumer-context.ts';
import { type Delivery, deliversHeartbeat } from './delivery.ts';
import { checkExpiry, hasExpired } from './expiry.ts';
import type { Handler } from './handler.ts';
import { checkLimits } from './limits.ts';
import { loadPayload } from './load-payload.ts';
import { type DeliveredEvent, type Handlers, handlerOf, refText } from './message.ts';
import {
  failUnclaimed,
  type MessageOutcome,
  refused,
  reportOutage,
  reportSkipped,
  START_MIN_MS,
  tooLate,
} from './message-outcome.ts';
import { checkOrder, onGatedRuns, orderOfHandler } from './order-gate.ts';
import { runUnclaimed } from './transactional-run.ts';

/**
 * Processes one message in its own span. It never throws: a failure affects only this message.
 *
 * @param alone - true if no other message runs beside it
 * @param mayHaveRow - a transactional message is claimed before its handler runs @default only if it was received before, or is old
 */
export async function work(
  ctx: ConsumerContext,
  delivery: Delivery,
  handlers: Handlers,
  alone: boolean,
  mayHaveRow = false,
): Promise<MessageOutcome> {
  const received = begin(ctx, delivery);
  try {
    return await receive(received, handlers, alone, mayHaveRow);
  } finally {
    received.span.end();
  }
}

/** A message with its span, which the caller ends. */
export function begin(ctx: ConsumerContext, delivery: Delivery): Received {
  const { config, queueName, tracer } = ctx;
  // Heartbeats are not counted either: their durations are not those of the consumer's work.
  const span =
    isTraced() && !deliversHeartbeat(delivery)
      ? tracer.start(
          processSpan(config.consumer, queueName, delivery.message, envelopeOf(delivery), tracer.current()),
        )
      : NO_SPAN;
  return receivedOf(ctx, delivery, span);
}

/** As {@link work}, in a span that has begun. */
export async function receive(
  received: Received,
  handlers: Handlers,
  alone: boolean,
  mayHaveRow = false,
): Promise<MessageOutcome> {
  const { clock, inbox } = received;
  const { message, receives, endsBy } = received.delivery;
  const { content, body } = received.delivery;
  if ('skipped' in content) return reportSkipped(received, content.skipped);
  if (endsBy - clock.now() < START_MIN_MS) return tooLate(received);
  try {
    await inbox.open();
    if ('envelope' in content && (await wasSettledUnread(inbox.rules, body, inbox.read)))
      return await refused(received, { status: 'processed', result: undefined });
    const read = readHandler(received, content, handlers);
    if ('problem' in read) return await failUnclaimed(received, read.problem);
    const { handler } = read;
    return await onGatedRuns(received, handler, read.envelope, async (passed) => {
      // A redelivered message may have killed its process, also by the size of its payload, so its attempts must be counted: it is claimed before its
      // payload is loaded, as is one that may be stale. Any other is rejected for a missing payload behind the gate, where a superseded one is not.
      const claimFirst =
        mayHaveRow ||
        receives > 1 ||
        hasExpired(passed, handler) ||
        forgottenBecause(inbox.rules, message.eventId) !== undefined;
      const loaded = claimFirst ? read : await loadPayload(passed, read.envelope);
      if ('problem' in loaded) return failUnclaimed(passed, loaded.problem);
      const { envelope } = loaded;
      if (handler.kind === 'leased') return claimAndRun(passed, handler, envelope, alone);
      // It may have become stale while its payload was loaded.
      const isClaimed = claimFirst || hasExpired(passed, handler);
      const outcome = isClaimed ? undefined : await runUnclaimed(passed, handler, envelope);
      if (outcome !== undefined) return outcome;
      // Its first run was, or would have been, unclaimed and is not counted.
      return claimAndRun(passed, handler, envelope, alone, 1);
    });
  } catch (error) {
    return reportOutage(received, error); // handler errors are caught where handlers run, so this was Mailroom's own call
  }
}

function readHandler(
  { config }: Received,
  content: DeliveredEvent | { readonly problem: unknown },
  handlers: Handlers,
) {
  if ('problem' in content) return content;
  try {
    return { envelope: content.envelope, handler: handlerOf(handlers, config.consumer, content) };
  } catch (problem) {
    return { problem };
  }
}

/**
 * The handlers of a consumer, by their events.
 *
 * @param options.canLimit - its storage and its source can keep the limits of handlers
 * @param options.canBatch - they can commit several messages in one transaction
 * @param options.around - runs around each of them, but not around heartbeats
 * @throws `BAD_CONSUMER`, `BAD_CONFIG`, as `createConsumer` does
 */
export function handlersByEvent(
  handlers: readonly Handler[],
  config: ProcessingConfig,
  {
    canLimit = false,
    canBatch = false,
    around,
  }: { readonly canLimit?: boolean; readonly canBatch?: boolean; readonly around?: Around | undefined } = {},
): Handlers {
  checkOrder(config);
  const byEvent = new Map<string, Handler>();
  for (const [i, handler] of handlers.entries()) {
    const type: unknown = handler?.definition?.type; // untyped code may pass anything
    if (typeof type !== 'string') {
      throw new MailroomError(
        'BAD_CONSUMER',
        `handlers[${i}] is of type ${typeof handler}, not a handler. Create it with leased(OrderPlaced, …) or transactional(OrderPlaced, …).`,
      );
    }
    const event = refText(handler.definition);
    if (byEvent.has(event)) {
      throw new MailroomError(
        'BAD_CONSUMER',
        `Two handlers take ${type} from ${handler.definition.source}. A consumer handles each event once: combine them into one handler, or create a second consumer.`,
      );
    }
    orderOfHandler(handler, config); // refuses an order that it cannot have
    byEvent.set(event, handler.definition === HEARTBEAT ? handler : { ...handler, around });
  }
  checkExpiry(handlers, config);
  checkLimits(handlers, config, canLimit);
  checkBatches(handlers, config, canBatch);
  return byEvent;
}
