import { MailroomError } from '../../errors.ts';
import { type InboxState, inboxState } from '../../store/inbox-state.ts';
import type { InboxRow } from '../../store/rows.ts';
import type { UnreadableRow } from '../../store/stored-rows.ts';
import type { Directory } from '../directory.ts';

/** What became of the published events at one consumer. `expected` is the sum of all others. */
export interface ConsumerLedger {
  /** Published events that it must see. */
  readonly expected: number;
  readonly processed: number;
  /** A worker holds it, or held it last. */
  readonly inFlight: number;
  /** It failed and comes again. */
  readonly failed: number;
  readonly rejected: number;
  /** Given up by an operator. */
  readonly discarded: number;
  /** An inbox row that cannot be read: see {@link UnreadableFinding}. */
  readonly unreadable: number;
  /** A letter in its dead-letter or undelivered queue, and no inbox row, or one that is overdue. */
  readonly deadLetters: number;
  /** No inbox row, and it may still be on its way, or on it once more. */
  readonly waiting: number;
  /** No inbox row, and nothing says that there should be one. */
  readonly unproven: number;
  /** It never received it, or no message is left of one that it has to try again. */
  readonly missing: number;
}

/** A published event that a consumer never received, or received and will not try again, because its message is gone. */
export interface MissingEvent {
  readonly eventId: string;
  readonly consumer: string;
  readonly type: string;
  /** Epoch milliseconds. */
  readonly publishedAt: number;
}

/** An event whose row cannot be read: its outbox row, or that of a consumer. Nothing is known of what it stands for. */
export interface UnreadableFinding {
  /** The sort key of an outbox row that is not that of an event. */
  readonly eventId: string;
  /** Whose inbox row it is; `null` for the outbox row. */
  readonly consumer: string | null;
  /** The reason, e.g. `its "schema" is 2, and this version reads up to 1`. */
  readonly problem: string;
}

/** A published event, as far as the audit remembers it. */
export interface PublishedEvent extends Omit<MissingEvent, 'consumer'> {
  readonly source: string;
  /** When it was sent to its consumers last, epoch milliseconds: later than it was published where an operator sent it again. */
  readonly sentAt: number;
  /** The consumer's inbox row as the walk saw it, where it waits for a message that is overdue. */
  readonly row?: InboxRow | undefined;
}

/** Where an event is at a consumer. */
type Standing = Exclude<keyof ConsumerLedger, 'expected'>;

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

/** The books of one audit, a page for each consumer. */
export interface Ledger {
  /** A consumer must see an event. */
  expect(consumer: string): void;
  /** It has an inbox row. One that cannot be read is its own class, and named. */
  row(consumer: string, eventId: string, row: InboxRow | UnreadableRow): void;
  /** It has no inbox row that the walk could see, or one that waits for a message which is overdue: to be judged later. */
  undecided(consumer: string, event: PublishedEvent): void;
  /** The events of a consumer that are still to be judged. */
  open(consumer: string): readonly PublishedEvent[];
  /** It was judged. */
  judge(consumer: string, event: PublishedEvent, standing: Standing): void;
  /** Every event that is missing, the oldest first. */
  missing(): MissingEvent[];
  /** Every inbox row that cannot be read, that of the oldest event first. */
  unreadable(): UnreadableFinding[];
  /**
   * Adds up.
   *
   * @throws `AUDIT_DOES_NOT_ADD_UP`, naming the consumer and its counts
   */
  close(): Record<string, ConsumerLedger>;
}

/** Opens the books. */
export function createLedger(directory: Directory): Ledger {
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

  return {
    expect: (consumer) => {
      page(consumer).counts.expected += 1;
    },
    row: (consumer, eventId, row) => {
      const state = inboxState(row, 0);
      if (state.is === 'absent') return;
      page(consumer).counts[STANDING_OF[state.is]] += 1;
      if (state.is === 'unreadable') unreadable.push({ eventId, consumer, problem: state.problem });
    },
    undecided: (consumer, event) => {
      page(consumer).open.push(event);
    },
    open: (consumer) => page(consumer).open,
    judge: (consumer, { eventId, type, publishedAt }, standing) => {
      page(consumer).counts[standing] += 1;
      if (standing === 'missing') missing.push({ eventId, consumer, type, publishedAt });
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
    `${expected} published events were expected at ${consumer}, but ${sum} were accounted for: ${found.join(', ')}. Every event belongs ` +
      'into just one of these: the audit itself is wrong, and so may be its other counts.',
  );
}
