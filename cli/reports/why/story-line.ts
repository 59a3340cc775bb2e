/** Something that happened to an event, or is scheduled. */
export interface StoryLine {
  /** Epoch milliseconds; `null` if no row has the time. The line then follows the one before it. */
  readonly at: number | null;
  /** A stable word, see docs/cli-json.md. */
  readonly what: StoryWord;
  /** The consumer; `null` for the outbox and the relay. */
  readonly consumer: string | null;
  readonly text: string;
  /** Of an ended attempt: equal for attempts that ended in the same way, with the same cause and effects. */
  readonly cause?: string | undefined;
}

type StoryWord =
  | 'committed'
  | 'scheduled'
  | 'due'
  | 'cancelled'
  | 'expired'
  | 'resent'
  | 'publish-failed'
  | 'dead'
  | 'requeued'
  | 'published'
  | 'discarded'
  | 'attempt-ended'
  | 'claimed'
  | 'effect-started'
  | 'effect-completed'
  | 'effect-released'
  | 'failed'
  | 'limited'
  | 'unfinished'
  | 'next-attempt'
  | 'processed'
  | 'resolved'
  | 'rejected'
  | 'dead-letter'
  | 'not-arrived'
  | 'redriven'
  | 'unreadable';

/** A line of the outbox's or of one consumer's story. */
export type OwnLine = Omit<StoryLine, 'consumer'>;

/** Makes a line. @param at - epoch milliseconds; absent if no row has the time */
export function tell(what: StoryWord, at: number | null | undefined, text: string): OwnLine {
  return { what, at: at ?? null, text };
}
