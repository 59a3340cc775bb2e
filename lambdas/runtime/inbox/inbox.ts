import type { Clock } from '../base/clock.ts';
import type { Redact } from '../observe/redaction.ts';
import type { RandomBytes } from '../store/event-id.ts';
import type { AttemptEnd, InboxHistory } from '../store/inbox-row.ts';
import type { GatedPlace } from '../store/last-sequence.ts';
import type { StoredEffect } from '../store/stored-effect.ts';

/** The settings of one consumer's inbox, in any storage. */
export interface InboxSettings {
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly consumer: string;
  readonly leaseMs: number;
  readonly inboxRetentionDays: number;
  /** The time at which the consumer got its name, epoch milliseconds. @default it never had another name */
  readonly inboxSince?: number | undefined;
  /** Redacts the text of an error before it is stored in a row. @default the unchanged text */
  readonly redact?: Redact | undefined;
}

/** The settings and the history that decide about a message, besides its row. */
export interface InboxRules extends InboxSettings {
  /** The retention history of the inbox, once it has been read. */
  readonly memory: {
    history?: Pick<InboxHistory, 'retentions' | 'unreadableSettled'> | undefined;
    /** The last read of it: its start, epoch milliseconds, and its end. */
    opened?: { readonly at: number; readonly ended: Promise<void> } | undefined;
  };
}

/** A received message. */
export interface Message {
  readonly eventId: string;
  /** The SQS message id; each redrive gives the message a new one. */
  readonly messageId: string;
  readonly type?: string | undefined;
  /** The time at which SQS received it, epoch milliseconds: its retention counts from here, also in the dead-letter queue. */
  readonly sentAt?: number | undefined;
  /** Its place in the order of its consumer, once it has passed the gate. Absent if it has none. */
  readonly place?: GatedPlace | undefined;
}

/** A granted claim: the right to process a message until `leaseUntil`. */
export interface Claim {
  readonly message: Message;
  readonly attempt: number;
  readonly fence: string;
  readonly leaseUntil: number;
  /** The latest time at which the function is stopped. */
  readonly endsBy: number;
  /** Another worker held the message before, and its lease passed. */
  readonly takenOver: boolean;
  /** The number of consecutive claims before this one that ended without a result. */
  readonly unfinished: number;
  /** The side effects of earlier claims, by name, as this claim read them. */
  readonly effects: Readonly<Record<string, StoredEffect>>;
  /** The attempts before this one, as its claim read them. */
  readonly pastAttempts?: readonly AttemptEnd[] | undefined;
  /** An operator has allowed it to run, however old it is. */
  readonly runAnyway?: boolean | undefined;
  /** The error of the previous attempt, if there was one, and its fingerprint. */
  readonly lastError?: string | undefined;
  readonly fingerprint?: string | undefined;
}

/** The reason why the inbox refuses a claim or another transition. */
export type InboxRefusal =
  /** Another worker holds it. */
  | { readonly status: 'leased'; readonly until: number; readonly endsBy: number }
  /** Its last claims ended without a result: it may have killed its process, so it runs only alone. */
  | { readonly status: 'suspect' }
  | { readonly status: 'processed'; readonly result: string | undefined }
  /** `why` is the stored error; absent if a later redrive has replaced it. */
  | { readonly status: 'rejected'; readonly reason: string; readonly why?: string | undefined }
  /** Its row has a status or a schema that this version does not support. */
  | { readonly status: 'unreadable'; readonly problem: string }
  /** It has no row, but its row may have expired, so it must not run. */
  | { readonly status: 'too-old'; readonly why: string };
