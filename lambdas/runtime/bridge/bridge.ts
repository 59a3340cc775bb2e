import type { StandardSchemaV1 } from '@standard-schema/spec';
import { type BridgeReceipt, TARGET_REFUSES } from '../base/bridge-receipt.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import { MailroomError } from '../base/errors.ts';
import { requireGiven } from '../base/given-names.ts';
import { poison } from '../base/poison.ts';
import { type Handler, leased } from '../consume/handler.ts';
import { type AnyEventDefinition, defineEvent, type ReceivedEvent } from '../events/event.ts';
import {
  type BridgedEvent,
  type BridgeRefusal,
  type BridgeResult,
  type BridgeTarget,
  entryBytes,
  isPermanent,
  refused,
} from './bridge-target.ts';
import { envelopeText } from './envelope-text.ts';
import { type BridgeHeaders, eventHeaders } from './event-headers.ts';
import { batchSender } from './send-batches.ts';

/** Options of {@link bridge}. */
export interface BridgeOptions {
  /** The target, e.g. `sqsTarget({ client })`. */
  readonly to: BridgeTarget;
  /** The events, as in the consumer's `events`. */
  readonly events: readonly AnyEventDefinition[];
  /**
   * The headers beside the body: `eventId`, `type`, `source` and the trace context; or the attributes of CloudEvents, whose data is the
   * envelope.
   *
   * @default 'mailroom'
   */
  readonly headers?: BridgeHeaders | undefined;
  /** The time that the target has to answer a call, milliseconds, from 100 to 900,000. @default 10,000 */
  readonly timeoutMs?: number | undefined;
}

const TIMEOUT_MS = 10_000;

/** Accepts every payload: a bridge does not read it, so it forwards every version. */
const ANY: StandardSchemaV1 = {
  '~standard': { version: 1, vendor: 'mailroom', validate: (value) => ({ value }) },
};

/**
 * Makes the handlers of a bridge: a consumer that sends each event to a queue, topic or stream of another system. It has the inbox,
 * retries and dead letters of every consumer; `mailroom why` shows the event's place at the target.
 *
 * The message is the envelope, byte for byte as EventBridge delivered it, but with its payload in place of a reference to S3. Each event reaches the target at least once, under its event id: a crash
 * between the target's answer and the inbox row sends it again. With the consumer's `order: strict()`, the target receives an aggregate's
 * events in their order; without it, in any order. docs/queues.md says for each target what can be duplicated.
 *
 * @throws `BAD_ARGUMENT` if `headers` is `cloudevents` and the target has no headers, or `timeoutMs` is out of range
 *
 * @example
 * ```ts
 * export const handler = lambdaConsumer(bridge({ to: sqsTarget({ client: new SQS(clientSettings) }), events: [OrderPlaced, OrderShipped] }));
 * ```
 */
export function bridge(options: BridgeOptions): Handler[] {
  return bridgeBy(systemClock, options);
}

/** {@link bridge}, with the clock of the target's deadline. */
export function bridgeBy(clock: Clock, options: BridgeOptions): Handler[] {
  requireGiven('bridge', options, 'to', 'events');
  const { to, events, headers = 'mailroom', timeoutMs = TIMEOUT_MS } = options;
  const { cloudEventsPrefix: prefix } = to;
  if (headers === 'cloudevents' && prefix === undefined) {
    const message = `bridge: headers is "cloudevents", but a message of ${to.name()} has no headers. Remove the option.`;
    throw new MailroomError('BAD_ARGUMENT', message);
  }
  if (!(timeoutMs >= 100 && timeoutMs <= 900_000)) {
    const message = `bridge: timeoutMs is ${timeoutMs}; it must be from 100 to 900,000. Keep it below the function's timeout.`;
    throw new MailroomError('BAD_ARGUMENT', message);
  }
  const send = batchSender(to, clock, timeoutMs);
  return events.map((definition) =>
    leased(anyVersionOf(definition), async ({ source, payload, data }, ctx) => {
      const published = envelopeText(ctx.body);
      // The target cannot read the bucket: it gets the payload in its place.
      const body =
        payload === undefined
          ? published
          : JSON.stringify({ ...JSON.parse(published), payload: undefined, data });
      const event: ReceivedEvent = { ...JSON.parse(body), source };
      const added = prefix === undefined ? {} : eventHeaders(event, headers, prefix);
      const bridge = String(ctx.logFields.consumer);
      const entry: BridgedEvent = { event, body, headers: added, bridge };
      const result = tooLarge(to, entry) ?? (await send(entry, ctx.signal));
      return receiptOf(to, result, ctx.attempt === 1 && ctx.logFields.receives === 1);
    }),
  );
}

function anyVersionOf({ source, type, aggregateType, sequence }: AnyEventDefinition) {
  return defineEvent({
    source,
    type,
    aggregateType,
    sequence,
    version: Number.MAX_SAFE_INTEGER,
    schema: ANY,
    upcast: (data) => data,
  });
}

function tooLarge({ limits }: BridgeTarget, entry: BridgedEvent): BridgeResult | undefined {
  const max = limits.entryBytes ?? limits.bytes;
  const bytes = entryBytes(entry);
  return bytes <= max
    ? undefined
    : refused('too-large', 'TOO_LARGE', `it has ${bytes} bytes with its headers; ${max} are allowed`);
}

const REMEDIES: Readonly<Record<BridgeRefusal, string>> = {
  missing: 'Create it, or correct the address of the target.',
  denied: "Correct the credentials, or grant the consumer's function the right to send.",
  unavailable: 'If it persists, check the target and the network to it.',
  'too-large': 'Raise the limit and redrive, or publish a smaller event and discard this one.',
  invalid: 'Find what the target does not accept, and discard the message or send it by hand.',
};

/** @throws `BRIDGE_FAILED`, which is retried; `BRIDGE_REJECTED`, which is not */
function receiptOf(target: BridgeTarget, result: BridgeResult, isFirst: boolean): BridgeReceipt {
  const name = target.name();
  if (result.ok) {
    const { place, duplicate } = result;
    return { forwardedTo: name, place, ...(duplicate && { duplicate, ...(isFirst && { neverSent: true }) }) };
  }
  const { refusal, code, message } = result;
  const said = message.slice(0, 300).replace(/[.\s]+$/, '');
  const text = `${name} did not take the event (${code}): ${said}. ${REMEDIES[refusal]}`;
  if (isPermanent(result)) throw poison(TARGET_REFUSES, text);
  throw new MailroomError('BRIDGE_FAILED', text);
}
