import type { Clock } from '../clock.ts';
import type { Redact } from '../redaction.ts';
import type { RandomBytes } from './event-id.ts';
import type { InboxHistory } from './rows.ts';
import type { Table } from './table.ts';

/** What the inbox of one consumer is made of. */
export interface InboxDeps {
  readonly table: Table;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly consumer: string;
  readonly leaseMs: number;
  readonly inboxRetentionDays: number;
  /** When the consumer took its name, epoch milliseconds. @default it never had another one */
  readonly inboxSince?: number | undefined;
  /** Applied to the text of an error before a row holds it. @default the text as it is */
  readonly redact?: Redact | undefined;
}

/**
 * The inbox: who may work on a message, and whether its work is done. One row a message and consumer; each transition is a
 * function over this context.
 *
 *     claim            renew            renew            complete
 *       |---- lease ----|---- lease ----|---- lease ------|
 *       |------------------- endsBy: the function is stopped -------------|
 *
 * The **fence** is a random token of one claim. Renew, fail, release, reject, complete and commit are each conditional
 * on `status = PROCESSING AND fence = mine`, so a worker that lost its lease can change nothing. Time only says
 * when somebody else may try; it never decides who is right.
 */
export interface InboxContext extends InboxDeps {
  /** How long the inbox has kept its rows so far, once it was read. */
  readonly memory: { history?: InboxHistory | undefined; opened?: Promise<void> | undefined };
}

/** What an operator needs of an inbox. */
export type InboxAccess = Pick<InboxContext, 'table' | 'clock' | 'random' | 'consumer'>;

/** Makes the inbox of one consumer. */
export function createInbox(deps: InboxDeps): InboxContext {
  return { ...deps, memory: {} };
}

/** A message as it was received. */
export interface Message {
  readonly eventId: string;
  /** SQS's message id: another one for every redrive. */
  readonly messageId: string;
  readonly type?: string | undefined;
  /** When SQS took it, epoch milliseconds: its retention counts from here, also in the dead-letter queue. */
  readonly sentAt?: number | undefined;
}

/** A claim that was granted: the right to work on a message until `leaseUntil`. */
export interface Claim {
  readonly message: Message;
  readonly attempt: number;
  readonly fence: string;
  readonly leaseUntil: number;
  /** When the function is stopped at the latest. */
  readonly endsBy: number;
  /** Whether another worker held it before, and its lease passed. */
  readonly takenOver: boolean;
  /** How many claims before this one, in a row, ended without a result. */
  readonly unfinished: number;
  /** The error of the attempt before, where there was one. */
  readonly lastError?: string | undefined;
}

/** Why a message is not ours: what the inbox says to a claim, and to every other transition, that it refuses. */
export type InboxRefusal =
  /** Somebody else holds it. */
  | { readonly status: 'leased'; readonly until: number; readonly endsBy: number }
  /** Its last claims ended without a result: it may have killed its process, so it runs only when it is alone. */
  | { readonly status: 'suspect' }
  | { readonly status: 'processed'; readonly result: string | undefined }
  | { readonly status: 'rejected'; readonly reason: string }
  /** Its row has a status that this version does not know. */
  | { readonly status: 'unreadable' }
  /** No row, and the inbox may have forgotten the event: its row may have expired, so it must not run. */
  | { readonly status: 'too-old'; readonly why: string };
