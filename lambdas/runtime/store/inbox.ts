import { createClaiming } from './inbox-claim.ts';
import { createCompletion } from './inbox-completion.ts';
import {
  type Claim,
  createConditions,
  type Message,
  type Refusal,
  type Verdict,
} from './inbox-conditions.ts';
import { createInboxMemory } from './inbox-history.ts';
import { createLeasing } from './inbox-lease.ts';
import { createRejection } from './inbox-rejection.ts';
import { createInboxRows, type InboxDeps } from './inbox-row.ts';
import type { TransactAction } from './table.ts';

/**
 * The inbox: who may work on a message, and whether its work is done. One row a message and consumer.
 *
 *     claim            renew            renew            complete
 *       |---- lease ----|---- lease ----|---- lease ------|
 *       |------------------- endsBy: the function is stopped -------------|
 *
 * The **fence** is a random token of one claim. Renew, fail, release, reject, complete and commit are each conditional
 * on `status = PROCESSING AND fence = mine`, so a worker that lost its lease can change nothing. Time only says
 * when somebody else may try; it never decides who is right.
 */
export interface Inbox {
  /**
   * Claims a message.
   *
   * @param options.alone - whether no other message runs in this invocation: one whose last claims ended without a result is
   * `suspect` otherwise
   * @param options.endsBy - when the function is stopped, epoch milliseconds
   * @param options.firstReceive - whether this is the first run of this message that counts: its attempts begin at 1,
   * also where a dead letter that comes back was never rejected
   */
  claim(
    message: Message,
    options: { readonly alone: boolean; readonly endsBy: number; readonly firstReceive: boolean },
  ): Promise<Verdict>;
  /** Extends the lease, never past `endsBy`. @throws `FENCE_LOST` when the message is not ours any more */
  renew(claim: Claim): Promise<Claim>;
  /** Whether nobody holds the message and it must run alone, because its last claims ended without a result. */
  isSuspect(message: Message): Promise<boolean>;
  /**
   * The handler failed: FAILED, with the error; anybody may claim it. Refused: what the row says instead.
   *
   * @param retryAt - when SQS shows the message again, epoch milliseconds
   */
  fail(claim: Claim, error: unknown, retryAt: number): Promise<Refusal | undefined>;
  /**
   * Lets go of the message as if this claim had not been: no attempt counts. Refused: what the row says instead.
   *
   * @param cause - stored as the row's last error @default nothing: it keeps the one that it has
   */
  release(claim: Claim, retryAt: number, cause?: unknown): Promise<Refusal | undefined>;
  /**
   * The handler ended because its function's time was up: FAILED, with the error. It counts as a claim without a result, and so
   * as an attempt only if it ran alone. Refused: what the row says instead.
   */
  cutOff(claim: Claim, error: unknown, retryAt: number): Promise<Refusal | undefined>;
  /**
   * The function's time is up and the handler still runs: says so on the row, which stays PROCESSING.
   *
   * @param robbed - whether the table took the handler's time: then the claim must not count, whatever came before it
   */
  markOutOfTime(claim: Claim, error: unknown, robbed: boolean): Promise<Refusal | undefined>;
  /** The message can never succeed. Refused: what the row says instead. */
  reject(claim: Claim, error: unknown): Promise<Refusal | undefined>;
  /**
   * Rejects a message that nobody claimed, on the claim's own condition. Where it is too old to know whether it was
   * processed, only the reason `EVENT_TOO_OLD` makes a row: any other could be mended, and let it run again.
   */
  rejectUnclaimed(message: Message, error: unknown): Promise<Refusal>;
  /** The work is done: PROCESSED. Refused: what the row says instead. */
  complete(claim: Claim, result: unknown): Promise<Refusal | undefined>;
  /** Domain writes, events and PROCESSED in one transaction, under the claim's fence. */
  commit(claim: Claim, writes: readonly TransactAction[]): Promise<void>;
  /**
   * The same without a claim, for a message of which there is no row. Refused: what the row says instead; `open` when
   * the message has to be claimed first.
   *
   * @throws `TRANSACTION_CANCELLED` when one of `writes` was refused
   */
  commitUnclaimed(
    message: Message,
    writes: readonly TransactAction[],
    attempt: number,
  ): Promise<Refusal | { readonly status: 'open' } | undefined>;
  /** Learns how long the inbox has kept its rows so far; whoever judges a message waits for it. Reads once. */
  open(): Promise<void>;
  /** Whether the inbox may have forgotten the event: without a row it must not run, because the row may have expired. */
  tooOld(message: Message): boolean;
}

/** Makes the inbox of one consumer. */
export function createInbox(deps: InboxDeps): Inbox {
  const memory = createInboxMemory(deps);
  const conditions = createConditions(deps.clock, memory);
  const rows = createInboxRows(deps, conditions);
  return {
    ...createClaiming(deps, rows, conditions),
    ...createLeasing(deps, rows),
    ...createRejection(deps, rows, conditions),
    ...createCompletion(deps, rows, conditions),
    open: memory.open,
    tooOld: conditions.tooOld,
  };
}
