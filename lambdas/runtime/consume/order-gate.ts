import type { ProcessingConfig } from '../base/consumer-config.ts';
import { MailroomError } from '../base/errors.ts';
import type { EventOrder } from '../base/order.ts';
import { poison } from '../base/poison.ts';
import type { Envelope } from '../events/event.ts';
import { type HandledDefinition, type HandledEvent, isExternal } from '../events/external-event.ts';
import type { PlaceInOrder } from '../store/inbox-row.ts';
import { type LastSequence, Overtaken, orderVerdict, readPlace } from '../store/last-sequence.ts';
import { supersede } from './claimed-run.ts';
import type { ConsumerContext, Received } from './consumer-context.ts';
import type { Handler } from './handler.ts';
import { again, failUnclaimed, type MessageOutcome, refused } from './message-outcome.ts';
import type { ClaimEnd } from './run-ending.ts';

/** The longest time that a message waits for its predecessor before it is received again, seconds. */
const WAIT_MAX_S = 60;

/**
 * Returns the order of a handler; `undefined` for an unordered one.
 *
 * @throws `BAD_CONSUMER` if the handler has an order that it cannot have
 */
export function orderOfHandler(
  { definition, order }: Handler,
  { order: ofConsumer }: Pick<ProcessingConfig, 'order'>,
): EventOrder | undefined {
  if (order === undefined) return isNumbered(definition) ? ofConsumer : undefined;
  if (!isNumbered(definition)) {
    throw new MailroomError(
      'BAD_CONSUMER',
      `The handler of ${definition.type} has an order, but its definition does not declare \`sequence: true\`. Declare it, or remove the handler's order.`,
    );
  }
  if (ofConsumer?.mode === 'strict') {
    throw new MailroomError(
      'BAD_CONSUMER',
      `The handler of ${definition.type} has its own order, but its consumer is strict: a strict order has one sequence for all events of an aggregate. Remove the handler's order.`,
    );
  }
  return order;
}

/** @throws `BAD_CONFIG` if a strict consumer does not know its last receive */
export function checkOrder({ order, maxReceives }: ProcessingConfig): void {
  if (order?.mode !== 'strict' || maxReceives !== undefined) return;
  throw new MailroomError(
    'BAD_CONFIG',
    'A consumer with a strict order has no maxReceives (MAILROOM_MAX_RECEIVES); it must be the number of receives after which SQS moves a message to the dead-letter queue. Set it.',
  );
}

function isNumbered(definition: HandledDefinition): boolean {
  return !isExternal(definition) && definition.sequence === true;
}

/**
 * Finds the place of an event in its consumer's order; `undefined` if it has none.
 *
 * @throws `UNREADABLE_MESSAGE` if the event has no usable `sequence`, or names that no key can have: a retry cannot succeed
 */
export function placeOf(
  { config }: Pick<ConsumerContext, 'config'>,
  handler: Handler,
  event: HandledEvent,
): PlaceInOrder | undefined {
  const order = orderOfHandler(handler, config);
  if (order === undefined) return undefined;
  const { source } = handler.definition;
  const read = readPlace(config.consumer, order, { ...(event as Envelope), source });
  if ('place' in read) return read.place;
  throw poison('UNREADABLE_MESSAGE', `Event ${event.type} ${read.problem}, and discard this message.`);
}

/**
 * The gate of an ordered message, before each of its runs and before its claim: only what the last applied sequence lets through is run.
 * It precedes the reading of the payload, so that a superseded message is not rejected for its payload.
 *
 * @returns the message with its place, or its outcome
 */
async function atGate(
  received: Received,
  handler: Handler,
  event: HandledEvent,
): Promise<{ readonly passed: Received } | { readonly outcome: MessageOutcome }> {
  let order: PlaceInOrder | undefined;
  try {
    order = placeOf(received, handler, event);
  } catch (error) {
    return { outcome: await failUnclaimed(received, error) };
  }
  if (order === undefined) return { passed: received };
  const seen = await received.inbox.lastSequence(order.key);
  const { config, delivery } = received;
  // A message that waits is rejected because of its predecessor: its number is not passed over, even if it has become next meanwhile.
  const isNext = order.sequence === seen.last + 1;
  const skipsRejected = isNext && config.order?.mode === 'strict' && config.order.onReject === 'skip';
  const message = { ...delivery.message, place: { order, seen, skipsRejected } };
  const passed: Received = { ...received, delivery: { ...delivery, message } };
  switch (orderVerdict(order, seen, message.eventId)) {
    case 'repeated':
      return { outcome: await failUnclaimed(passed, repeated(order.sequence, seen.eventId)) };
    case 'applied':
    case 'superseded': {
      const end = await supersede(passed, seen.last);
      return { outcome: await outcomeOf(passed, end) };
    }
    case 'waits':
      return { outcome: await wait(passed, order, seen) };
    case 'runs':
      return { passed };
  }
}

/**
 * Runs an ordered message behind its gate, and again if another event of its aggregate was applied before its commit.
 *
 * @throws the table's error
 */
export async function onGatedRuns(
  received: Received,
  handler: Handler,
  event: HandledEvent,
  run: (passed: Received) => Promise<ClaimEnd>,
): Promise<MessageOutcome> {
  const { clock, delivery } = received;
  for (let tries = 1; ; tries += 1) {
    const gate = await atGate(received, handler, event);
    if ('outcome' in gate) return gate.outcome;
    try {
      return await outcomeOf(gate.passed, await run(gate.passed));
    } catch (error) {
      if (!(error instanceof Overtaken)) throw error;
      if (tries === GATE_TRIES || delivery.endsBy - clock.now() < TRY_MIN_MS) return again(1_000, error);
    }
  }
}

async function outcomeOf(received: Received, end: ClaimEnd): Promise<MessageOutcome> {
  return 'status' in end ? refused(received, end) : end;
}

/** The maximum number of consecutive runs of a message that other events overtake. */
const GATE_TRIES = 4;

/** With less time than this left, the message is not run again immediately, milliseconds. */
const TRY_MIN_MS = 2_000;

/** The predecessor has not been applied: nothing is written until the last receive, which rejects the message. */
async function wait(
  received: Received,
  { sequence }: PlaceInOrder,
  { last }: LastSequence,
): Promise<MessageOutcome> {
  const { config, telemetry, delivery } = received;
  const { receives } = delivery;
  const missing = last + 1;
  if (receives >= (config.maxReceives ?? Number.POSITIVE_INFINITY)) {
    const text = `The message has sequence ${sequence}, and sequence ${missing} of its aggregate was not applied until the last of its ${receives} receives. Find that event and redrive or skip it; then redrive this message.`;
    return failUnclaimed(received, poison('OUT_OF_ORDER', text));
  }
  telemetry.count('MessagesOutOfOrder');
  const waitS = Math.min(WAIT_MAX_S, 2 ** Math.min(receives - 1, 10));
  return again(
    waitS * 1_000,
    new MailroomError(
      'OUT_OF_ORDER',
      `The message has sequence ${sequence} and waits for sequence ${missing} of its aggregate; it is delivered again after ${waitS} s.`,
    ),
  );
}

function repeated(sequence: number, eventId = ''): MailroomError {
  return poison(
    'SEQUENCE_REPEATED',
    `Sequence ${sequence} of the aggregate was applied by another event, ${eventId}. Each event of an aggregate needs its own number: correct the publisher, and discard this message or publish its change under the next number.`,
  );
}
