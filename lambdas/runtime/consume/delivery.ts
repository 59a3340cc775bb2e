import { errorMessage, isMailroomError } from '../base/errors.ts';
import { textOf } from '../base/json.ts';
import { DAY_MS } from '../base/units.ts';
import { isHeartbeat } from '../events/heartbeat-event.ts';
import type { Message } from '../inbox/inbox.ts';
import { unreadableId } from '../store/event-id.ts';
import { type DeliveredEvent, type ExternalReading, readDelivered } from './message.ts';

/** One receive of a message. */
export interface Delivery {
  readonly message: Message;
  /** As its source delivered it. */
  readonly body: string;
  /** The number of times its source has delivered the message, including this one. */
  readonly receives: number;
  /** Hides the message while its handler runs. @default its source does not show a message again that was not answered */
  readonly visibility?: Visibility | undefined;
  /** The start of this invocation, epoch milliseconds. */
  readonly beganAt: number;
  /** The time at which this invocation is stopped, epoch milliseconds. */
  readonly endsBy: number;
  /** The event, the reason why it cannot be read, or the reason why the message contains no event, e.g. a test message of S3. */
  readonly content: DeliveredEvent | { readonly problem: unknown } | { readonly skipped: string };
}

/** The visibility of a message that its source shows again after a time. */
interface Visibility {
  /** The time for which a received message is hidden, milliseconds. @default 0: unknown */
  readonly timeoutMs: number;
  /** Hides the message for a period from now on, milliseconds. */
  hide(ms: number): Promise<void>;
}

/** A message as its source received it, before anything is decided. */
export interface SourceDelivery extends Pick<Delivery, 'body' | 'visibility'> {
  readonly messageId: string;
  /** The number of deliveries, including this one. @default unknown: the message may be a repeat, so its attempts are counted */
  readonly receives?: number | undefined;
  /** The time at which the source received it, epoch milliseconds. @default unknown */
  readonly sentAt?: number | undefined;
  /** The reason why its body cannot be read, if its source knows it. */
  readonly problem?: unknown;
  /** The remedy for a body that is not JSON. @default for a message in a queue */
  readonly remedy?: string | undefined;
}

/** Returns true for a heartbeat, which the consumer's metrics of messages and of latency exclude. */
export function deliversHeartbeat({ content }: Delivery): boolean {
  return 'bus' in content && isHeartbeat(content.bus);
}

/**
 * Reads what a source received. If the body is unreadable, an id derived from the body replaces the one inside.
 *
 * @param invocation - its start and the time at which it is stopped, epoch milliseconds
 * @param subscriptions - the consumer's external events
 */
export function readDelivery(
  given: SourceDelivery,
  invocation: Pick<Delivery, 'beganAt' | 'endsBy'>,
  subscriptions: ExternalReading['subscriptions'],
): Delivery {
  const { messageId, body, visibility } = given;
  const common = { ...invocation, body, visibility, receives: receivesOf(given) };
  const message = { messageId, sentAt: sentAtOf(given, invocation.beganAt) };
  try {
    const arrivedAt = message.sentAt ?? invocation.beganAt;
    if (given.problem !== undefined) throw given.problem;
    const content = readDelivered(body, { subscriptions, arrivedAt, remedy: given.remedy });
    const { eventId, type } = content.envelope;
    return { ...common, message: { ...message, eventId, type }, content };
  } catch (problem) {
    return {
      ...common,
      message: { ...message, eventId: unreadableId(textOf(body) ?? messageId) },
      content: isMailroomError(problem, 'NO_EVENT') ? { skipped: errorMessage(problem) } : { problem },
    };
  }
}

/** If the source does not report the number of deliveries, the message may be a repeat, so its attempts are counted. */
function receivesOf({ receives = 2 }: SourceDelivery): number {
  return Number.isSafeInteger(receives) && receives >= 1 ? receives : 2;
}

/**
 * The time at which the source received the message, epoch milliseconds; `undefined` if it does not report one. Some sources pass on what the
 * sender wrote: a time that is more than a day ahead is not known either.
 */
function sentAtOf({ sentAt = 0 }: SourceDelivery, now: number): number | undefined {
  return sentAt > 0 && sentAt <= now + DAY_MS ? sentAt : undefined;
}
