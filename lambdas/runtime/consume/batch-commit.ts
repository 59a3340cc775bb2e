import { MailroomError } from '../base/errors.ts';
import type { EventDraft } from '../events/event.ts';
import type { CausingEvent } from '../outbox/outbox-entry.ts';
import type { Commit } from '../store/dynamo/outbox.ts';

/** An event that a batch handler publishes, and the event of its batch that caused it. */
export interface CausedDraft {
  /** The new event. */
  readonly draft: EventDraft;
  /** One of the events that the handler received: the new event inherits its correlation and trace, and names it as its cause. */
  readonly cause: CausingEvent;
}

/** The content of a batch handler's transaction. */
export interface BatchCommit extends Omit<Commit, 'events'> {
  /** Events to publish if and only if the transaction commits. @default none */
  readonly events?: readonly CausedDraft[] | undefined;
}

/** A commit whose events have their causes. */
export type CausedCommit = BatchCommit & { readonly events: readonly CausedDraft[] };

/** The commit of a handler that took one event. @throws `NO_COMMIT` if its events are not a list */
export function allCausedBy(cause: CausingEvent, { writes, events = [] }: Commit): CausedCommit {
  const given: Partial<Iterable<EventDraft>> = Object(events); // untyped code may pass one draft, or a promise of drafts
  if (given[Symbol.iterator] === undefined)
    throw new MailroomError(
      'NO_COMMIT',
      `A commit has events of type ${typeof events}; they must be a list, such as [OrderShipped.create(…)].`,
    );
  return { writes, events: [...events].map((draft) => ({ draft, cause })) };
}

/**
 * Checks the causes of a commit's events. They come from a handler, so they are replaced by the events that it received.
 *
 * @param events - those that the handler received
 * @throws `NO_COMMIT` if one is not caused by one of these
 */
export function causedBy(
  what: string,
  { events: drafts = [], ...commit }: BatchCommit,
  events: readonly CausingEvent[],
): CausedCommit {
  if (!Array.isArray(drafts)) throw badEvent(what, `events of type ${typeof drafts}`);
  const received = new Map(events.map((event) => [event.eventId, event]));
  const caused = drafts.map((given: Partial<CausedDraft> | null, i): CausedDraft => {
    const { draft, cause } = given ?? {};
    const event = received.get(cause?.eventId ?? '');
    if (draft === undefined || event === undefined)
      throw badEvent(what, `events[${i}] ${draft === undefined ? 'without a draft' : 'with another cause'}`);
    return { draft, cause: event };
  });
  return { ...commit, events: caused };
}

function badEvent(what: string, returned: string): MailroomError {
  return new MailroomError(
    'NO_COMMIT',
    `${what} returned ${returned}; each event of a batch is { draft: OrderShipped.create(…), cause: event }, with one of the events that the handler received.`,
  );
}
