import { MailroomError } from '../../base/errors.ts';
import { type InboxState, inboxState } from '../../inbox/inbox-state.ts';
import type { InboxRow } from '../../store/inbox-row.ts';
import type { UnreadableRow } from '../../store/stored-rows.ts';
import type { Directory } from '../directory.ts';

/** The states of the published events at one consumer. `expected` is the sum of all others. */
export interface ConsumerLedger {
  /** Published events that it must receive. */
  readonly expected: number;
  readonly processed: number;
  /** A worker holds it, or was the last to hold it. */
  readonly inFlight: number;
  /** It failed and will be retried. */
  readonly failed: number;
  readonly rejected: number;
  /** Discarded by an operator. */
  readonly discarded: number;
  /** Its inbox row cannot be read: see {@link UnreadableFinding}. */
  readonly unreadable: number;
  /** A dead letter in its dead-letter or undelivered queue, and no inbox row or an overdue one. */
  readonly deadLetters: number;
  /** No inbox row, and it may still be in delivery, or be one of the dead letters that could not be read. */
  readonly waiting: number;
  /** It should have been received by now, but its message may be in the queue: see {@link InconclusiveEvents}. */
  readonly inconclusive: number;
  /** No inbox row, and no proof that there should be one. */
  readonly unproven: number;
  /** It was never received, or no message is left of one that has to be retried. */
  readonly missing: number;
}

/** A published event that a consumer never received, or received and will not retry because its message is gone. */
export interface MissingEvent {
  readonly eventId: string;
  readonly consumer: string;
  readonly type: string;
  /** Epoch milliseconds. */
  readonly publishedAt: number;
  /** When a repair last sent it to a consumer, epoch milliseconds; `null` if none did. Missing all the same: what loses it is still there. */
  readonly resentAt: number | null;
  /** The state of its inbox row, which waits for a message that is gone; `null` without a row. */
  readonly row: 'FAILED' | 'PROCESSING' | null;
}

/** The events of a consumer that are in its queue or lost; which of the two cannot be known yet. */
export interface InconclusiveEvents {
  readonly consumer: string;
  /** The number of these events. */
  readonly events: number;
  /** The messages in the consumer's queue, by SQS's approximate count. */
  readonly queued: number;
  /** The number of these events that the queue cannot hold, because it has too few messages. As certain as `queued`. */
  readonly missingAtLeast: number;
  /**
   * From this time on, epoch milliseconds, each event that is older than the oldest message is proven missing; `null` if only an
   * empty queue proves it, because the age of the oldest message is unknown, or an event was already received.
   */
  readonly conclusiveAt: number | null;
}

/** An event with an unreadable row, in the outbox or at a consumer. Its state is unknown. */
export interface UnreadableFinding {
  /** The event's id, or the sort key of an outbox row that is not an event's. */
  readonly eventId: string;
  /** The consumer whose inbox row it is; `null` for the outbox row. */
  readonly consumer: string | null;
  /** The reason, e.g. `its "schema" is 2, and this version reads up to 1`. */
  readonly problem: string;
}

/** A published event, with the properties that the audit needs. */
export interface PublishedEvent extends Omit<MissingEvent, 'consumer' | 'row'> {
  readonly source: string;
  /** The last time it was sent to its consumers, epoch milliseconds: later than its publish if an operator sent it again. */
  readonly sentAt: number;
  /** The consumer's inbox row as the walk read it, if it waits for an overdue message. */
  readonly row?: InboxRow | undefined;
}

/** The state of an event at a consumer. */
export type Standing = Exclude<keyof ConsumerLedger, 'expected'>;

/** The column in which an inbox row is counted. The audit does not judge leases: an abandoned message is in flight. */
const STANDING_OF: Readonly<Record<Exclude<InboxState['is'], 'absent'>, Standing>> = {
  processed: 'processed',
  leased: 'inFlight',
  abandoned: 'inFlight',
  failed: 'failed',
  rejected: 'rejected',
  discarded: 'discarded',
  unreadable: 'unreadable',
};

/** The accounts of one audit, one per consumer. */
export interface Ledger {
  /** Counts an event that a consumer must receive. */
  expect(consumer: string): void;
  /** Counts an event with an inbox row. Unreadable rows are counted separately and listed. */
  row(consumer: string, eventId: string, row: InboxRow | UnreadableRow): void;
  /** Adds an event without a visible inbox row, or whose row waits for an overdue message: it is judged later. */
  undecided(consumer: string, event: PublishedEvent): void;
  /** Returns the events of a consumer that are still to be judged. */
  open(consumer: string): readonly PublishedEvent[];
  /** Counts a judged event. */
  judge(consumer: string, event: PublishedEvent, standing: Standing): void;
  /** Returns all missing events, oldest first. */
  missing(): MissingEvent[];
  /** Returns all unreadable inbox rows, oldest event first. */
  unreadable(): UnreadableFinding[];
  /**
   * Returns the counts, after checking that they add up.
   *
   * @throws `AUDIT_DOES_NOT_ADD_UP`, naming the consumer and its counts
   */
  close(): Record<string, ConsumerLedger>;
}

/** Opens the accounts of an audit. @param onCounted - called for each event at each consumer, with its row if it was read */
export function createLedger(
  directory: Directory,
  onCounted: (consumer: string, eventId: string, standing: Standing, row?: InboxRow) => void = () => {},
): Ledger {
  const pages = new Map(
    directory.consumers.map(({ name }) => [name, { counts: blank(), open: [] as PublishedEvent[] }] as const),
  );
  const missing: MissingEvent[] = [];
  const unreadable: UnreadableFinding[] = [];

  function page(consumer: string) {
    const found = pages.get(consumer);
    if (found !== undefined) return found;
    throw new MailroomError('NO_SUCH_CONSUMER', `The directory has no consumer "${consumer}".`);
  }

  function count(consumer: string, eventId: string, standing: Standing, row?: InboxRow): void {
    page(consumer).counts[standing] += 1;
    onCounted(consumer, eventId, standing, row);
  }

  return {
    expect: (consumer) => {
      page(consumer).counts.expected += 1;
    },
    row: (consumer, eventId, row) => {
      const state = inboxState(row, 0);
      if (state.is === 'absent') return;
      if (state.is === 'unreadable') unreadable.push({ eventId, consumer, problem: state.problem });
      count(consumer, eventId, STANDING_OF[state.is], 'row' in state ? state.row : undefined);
    },
    undecided: (consumer, event) => {
      page(consumer).open.push(event);
    },
    open: (consumer) => page(consumer).open,
    judge: (consumer, { eventId, type, publishedAt, resentAt, row }, standing) => {
      count(consumer, eventId, standing);
      if (standing === 'missing')
        missing.push({ eventId, consumer, type, publishedAt, resentAt, row: waitingStatus(row) });
    },
    missing: () => missing.toSorted((a, b) => a.eventId.localeCompare(b.eventId)),
    unreadable: () => unreadable.toSorted((a, b) => a.eventId.localeCompare(b.eventId)),
    close: () => {
      const closed = [...pages].map(
        ([consumer, { counts }]) => [consumer, balanced(consumer, counts)] as const,
      );
      return Object.fromEntries(closed);
    },
  };
}

/** The state of a row that waits for a message. */
function waitingStatus(row: InboxRow | undefined): MissingEvent['row'] {
  return row?.status === 'FAILED' || row?.status === 'PROCESSING' ? row.status : null;
}

type Counts = { -readonly [K in keyof ConsumerLedger]: number };

function blank(): Counts {
  return {
    expected: 0,
    processed: 0,
    inFlight: 0,
    failed: 0,
    rejected: 0,
    discarded: 0,
    unreadable: 0,
    deadLetters: 0,
    waiting: 0,
    inconclusive: 0,
    unproven: 0,
    missing: 0,
  };
}

function balanced(consumer: string, counts: Counts): ConsumerLedger {
  const { expected, ...standings } = counts;
  const sum = Object.values(standings).reduce((total, count) => total + count, 0);
  if (sum === expected) return { ...counts };
  const found = Object.entries(standings).map(([standing, count]) => `${standing} ${count}`);
  throw new MailroomError(
    'AUDIT_DOES_NOT_ADD_UP',
    `${expected} published events were expected at ${consumer}, but ${sum} were accounted for: ${found.join(', ')}. Each event must have ` +
      'exactly one of these states: the audit itself is wrong, and its other counts may be wrong too.',
  );
}
