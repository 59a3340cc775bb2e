import type { HandledEvent } from '../events/external-event.ts';
import type { ClaimOptions, ClaimResult } from '../inbox/claim-transitions.ts';
import type { Claim, InboxRefusal, InboxRules, Message } from '../inbox/inbox.ts';
import type { EffectCall, EffectEnd } from '../inbox/inbox-effect.ts';
import type { TokenAsked } from '../inbox/limit-bucket.ts';
import type { EffectStates } from '../inbox/past-attempts.ts';
import type { BucketOf, TokenAnswer } from '../store/dynamo/limit-bucket.ts';
import type { PlaceAnswer, PlaceHeld, PlacesOf } from '../store/dynamo/limit-place.ts';
import type { Commit } from '../store/dynamo/outbox.ts';
import type { AskedWait, InboxRow } from '../store/inbox-row.ts';
import type { LastSequence } from '../store/last-sequence.ts';
import type { StoredEffect } from '../store/stored-effect.ts';
import type { CausedCommit } from './batch-commit.ts';
import type { InTime } from './in-time.ts';

/**
 * A handler's part of a commit. With PostgreSQL it runs inside the transaction `tx`; with DynamoDB it runs before it, and its `writes` are
 * part of it.
 */
export type HandlerWork = (tx: unknown) => Promise<Commit>;

/** The end of a commit, whatever happened: a commit returns it, and throws nothing. */
export type CommitEnd = { readonly status: 'committed'; readonly events: number } | CommitFailure;

export interface CommitFailure {
  readonly status: 'failed';
  readonly error: unknown;
  /** Nothing was written, and nothing will be. Otherwise, the response was lost, and the commit may still take effect; or the handler committed a part itself. */
  readonly wroteNothing: boolean;
  /** It failed because the storage was unreachable. */
  readonly isOutage: boolean;
}

/** The end of a commit without a claim. `open`: the message must be claimed first. */
export type UnclaimedEnd = CommitEnd | { readonly status: 'open' } | InboxRefusal;

/** The end of a commit of several messages. `rows`: these have a row, and nothing was written; each must be claimed first. */
export type BatchEnd = CommitEnd | { readonly status: 'rows'; readonly of: readonly Message[] };

/**
 * The storage of one consumer's inbox. Each transition is atomic, and those under a claim are conditional on its fence. They return the
 * refusal if they were refused, and throw the storage's error if their outcome is unknown.
 */
export interface Inbox {
  readonly rules: InboxRules;
  /** Reads the retention history before any message is judged, and again after half a day. */
  open(): Promise<void>;
  /** Reads the current row of a message, with times of the rules' clock. */
  read(eventId: string): Promise<InboxRow | undefined>;
  /** Reads the last applied sequence of an aggregate. */
  lastSequence(key: string): Promise<LastSequence>;
  claim(message: Message, options: ClaimOptions): Promise<ClaimResult>;
  /** Extends the lease, never past `endsBy`. @throws `FENCE_LOST` */
  renew(claim: Claim): Promise<unknown>;
  complete(claim: Claim, result: unknown): Promise<InboxRefusal | undefined>;
  supersede(claim: Claim, by: number): Promise<InboxRefusal | undefined>;
  discardStale(claim: Claim): Promise<InboxRefusal | undefined>;
  fail(
    claim: Claim,
    error: unknown,
    retryAt: number,
    effects: EffectStates,
  ): Promise<InboxRefusal | undefined>;
  release(
    claim: Claim,
    retryAt: number,
    effects: EffectStates,
    cause?: unknown,
    wait?: AskedWait,
  ): Promise<InboxRefusal | undefined>;
  cutOff(
    claim: Claim,
    error: unknown,
    retryAt: number,
    effects: EffectStates,
  ): Promise<InboxRefusal | undefined>;
  markOutOfTime(claim: Claim, error: unknown, lostTimeToTable: boolean): Promise<InboxRefusal | undefined>;
  reject(claim: Claim, error: unknown, effects: EffectStates): Promise<InboxRefusal | undefined>;
  rejectUnclaimed(message: Message, error: unknown): Promise<InboxRefusal>;
  /** As `startEffect` of the inbox in DynamoDB. */
  startEffect(call: EffectCall): Promise<Pick<StoredEffect, 'result'> | undefined>;
  /** As `finishEffect` of the inbox in DynamoDB. */
  finishEffect(call: EffectCall, end: EffectEnd): Promise<void>;
  /** Absent: this storage has no limits. */
  readonly limits?: InboxLimits;
  /**
   * Commits a handler's work, its events and PROCESSED in one transaction. It fails with `FENCE_LOST` if this worker has lost the message.
   *
   * @param sending - called before the transaction is sent, which it refuses by an error
   */
  commit(claim: Claim, work: HandlerWork, event: HandledEvent, sending: () => void): Promise<CommitEnd>;
  /**
   * As {@link Inbox.commit}, for a message without a row.
   *
   * @param inTime - stops the wait for the handler, or for the objects of its events, when the function's time is nearly up: nothing is begun then
   */
  commitUnclaimed(
    message: Message,
    attempt: number,
    work: HandlerWork,
    event: HandledEvent,
    inTime: InTime,
  ): Promise<UnclaimedEnd>;
  /** As {@link Inbox.commitUnclaimed}, of several messages without a row, each with another event: all, or none. Absent: this storage cannot. */
  commitBatch?(
    messages: readonly Message[],
    work: () => Promise<CausedCommit>,
    inTime: InTime,
  ): Promise<BatchEnd>;
  /** Lists a failed message, if the storage needs a list. It never throws. @param retryAt - epoch milliseconds */
  putHint(eventId: string, retryAt: number): Promise<unknown>;
  removeHint(eventId: string): Promise<unknown>;
  /** Returns true if a call of this inbox failed because the storage was unreachable. */
  isOutage(error: unknown): boolean;
  /** Returns true if a transaction that was refused may succeed if its handler runs again immediately. */
  isConflict(error: unknown): boolean;
}

/** The buckets of limits. Each call throws `UNREADABLE_ROW`, or the storage's error. */
export interface InboxLimits {
  /** Takes a token of a limit, or a slot in its line. */
  takeToken(bucket: BucketOf, asked: TokenAsked): Promise<TokenAnswer>;
  /** The same with a place, for a limit with a concurrency. After an error, the message may have the place. */
  takePlace(bucket: PlacesOf, asked: TokenAsked): Promise<PlaceAnswer>;
  /** Frees a place, if it is taken. After an error, it is free when its function has certainly stopped. */
  freePlace(place: PlaceHeld): Promise<void>;
}
