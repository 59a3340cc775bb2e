import { MailroomError } from './errors.ts';

/** Ordered by {@link latest}: an event that is older than the last one applied is absorbed. */
export interface LatestOrder {
  readonly mode: 'latest';
  /** The events of one service that share a last applied sequence. @default the event's type */
  readonly group?: string | undefined;
}

/** Ordered by {@link strict}: an event is applied only after its predecessor. */
export interface StrictOrder {
  readonly mode: 'strict';
  /** The effect of a rejected message on the later events of its aggregate. */
  readonly onReject: 'block' | 'skip';
}

/** The order in which a consumer applies the events of an aggregate, by their `sequence`. */
export type EventOrder = LatestOrder | StrictOrder;

/** The group of {@link strict}, which no other may use. */
export const STRICT_GROUP = 'strict';

const GROUP = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Absorbs every event that is older than the last one applied, per aggregate. Use it only for events that carry the whole state. Each service
 * has its own sequences, also of an aggregate with the same type and id.
 *
 * @param options.group - events of several types of a service that share one last applied sequence: 1 to 64 letters, digits, dots, dashes and
 * underscores @default each event type has its own
 * @throws `BAD_CONSUMER` if the group is not such a name, or is `strict`
 *
 * @example
 * ```ts
 * leased(AddressChanged, storeAddress, { order: latest() });
 * ```
 */
export function latest({ group }: { readonly group?: string | undefined } = {}): LatestOrder {
  if (group === undefined) return { mode: 'latest' };
  if (typeof group === 'string' && GROUP.test(group) && group !== STRICT_GROUP)
    return { mode: 'latest', group };
  throw new MailroomError(
    'BAD_CONSUMER',
    `latest: group is ${JSON.stringify(group)}; it must have 1 to 64 letters, digits, dots, dashes and underscores, and not be "${STRICT_GROUP}".`,
  );
}

/**
 * Applies each event only after its predecessor, per aggregate: sequence 1 first, then 2, and so on. A later event waits in its queue.
 * The events of a service share one sequence per aggregate; those of another service have their own.
 *
 * @param options.onReject - `block`: a rejected message holds up the later events of its aggregate until it is redriven or skipped.
 * `skip`: they go on without it, and a redrive of it changes nothing; a message without a handler, that cannot be read, or that is too old
 * (`EVENT_TOO_OLD`) still holds them up @default 'block'
 * @throws `BAD_CONSUMER` if `onReject` is another value
 *
 * @example
 * ```ts
 * new InboxConsumer(this, 'Ledger', { mailroom, events: [AccountOpened, AmountBooked], order: strict(), … });
 * ```
 */
export function strict({
  onReject = 'block',
}: {
  readonly onReject?: 'block' | 'skip' | undefined;
} = {}): StrictOrder {
  if (onReject === 'block' || onReject === 'skip') return { mode: 'strict', onReject };
  throw new MailroomError(
    'BAD_CONSUMER',
    `strict: onReject is ${JSON.stringify(onReject)}; it must be "block" or "skip".`,
  );
}

/** Encodes an order as one word, as in an environment variable. */
export function orderText(order: EventOrder): string {
  const { mode } = order;
  if (mode === 'strict') return `strict:${order.onReject}`;
  return order.group === undefined ? mode : `latest:${order.group}`;
}

/** Reads an order that {@link orderText} encoded; `undefined` if it is none. */
export function orderOfText(text: string): EventOrder | undefined {
  try {
    if (text === 'latest') return latest();
    const [, mode, option] = /^(latest|strict):(.+)$/.exec(text) ?? [];
    if (mode === 'latest') return latest({ group: option });
    return mode === 'strict' ? strict({ onReject: option as 'block' }) : undefined;
  } catch {
    return undefined;
  }
}
