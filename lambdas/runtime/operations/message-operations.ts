import { CLOCK_SKEW_MS, systemClock } from '../clock.ts';
import { MailroomError } from '../errors.ts';
import { eventIdTime, mintToken, systemRandomBytes } from '../store/event-id.ts';
import { TOO_OLD } from '../store/inbox-conditions.ts';
import {
  allowMessage,
  asSeen,
  decideMessage,
  type FinalDecision,
  NOT_FINAL,
} from '../store/inbox-decision.ts';
import { inboxState } from '../store/inbox-state.ts';
import type { Note, OperationDeps } from '../store/operation-record.ts';
import { type InboxRow, inboxKey } from '../store/rows.ts';
import { isUnreadable, readable, readInboxRow } from '../store/stored-rows.ts';

/** Says which message is meant, who decided about it, and why. */
export interface MessageNote extends Note {
  readonly consumer: string;
  readonly eventId: string;
}

/** Says which message is resolved or discarded, by whom, and why. */
export interface Resolution extends MessageNote {
  /** How long the row is kept before TTL may delete it: the consumer's `inboxRetentionDays`. */
  readonly inboxRetentionDays: number;
  /**
   * Takes the message from a worker that still holds it: nothing that this worker writes from then on is accepted. What
   * it does outside DynamoDB cannot be taken back. @default false
   */
  readonly force?: boolean | undefined;
}

/**
 * What a message is after an operator's decision. `leased`: a worker may hold it until `until`; `unreadable`: nobody can say
 * whether one does. In both cases nothing was changed.
 */
export type Decision =
  | { readonly status: 'resolved' | 'processed' | 'discarded' }
  | { readonly status: 'leased'; readonly until: number }
  | { readonly status: 'unreadable'; readonly problem: string };

/**
 * Sets a message PROCESSED without running its handler: what it should have done was done by hand. The row takes a
 * fence of its own, so that a worker which still runs can write nothing any more, and a REJECTED pointer goes in the
 * same transaction. When the message comes again it is absorbed as a duplicate.
 *
 * @returns what the row says: `resolved`; `processed` or `discarded` when it was so before; `leased` or `unreadable` when
 * nothing was changed
 * @throws `BAD_EVENT_ID` when it is neither an event id nor `unreadable-<SQS message id>`
 *
 * @example
 * ```ts
 * await resolveMessage({ table }, { consumer: 'payments', eventId, reason: 'charged by phone', by: 'ada', inboxRetentionDays: 35 });
 * ```
 */
export async function resolveMessage(deps: OperationDeps, resolution: Resolution): Promise<Decision> {
  if (!resolution.eventId.startsWith('unreadable-')) eventIdTime(resolution.eventId); // refuses what is none
  return decide(deps, resolution, 'PROCESSED');
}

/**
 * Gives a message up for good: DISCARDED, so that it is never run, whenever it comes again. The row takes a fence of its
 * own, and a REJECTED pointer goes in the same transaction. Refused when it is processed, or a worker holds it.
 *
 * @param discard.eventId - the event's id, or `unreadable-<SQS message id>` for a message without one
 * @returns what the row says: `discarded` now or before, `processed`; `leased` or `unreadable` when nothing was changed
 */
export async function discardMessage(
  deps: OperationDeps,
  discard: Omit<Resolution, 'force'>,
): Promise<Decision> {
  return decide(deps, discard, 'DISCARDED');
}

/** How often a message is looked at whose row changes between the look and the write. */
const LOOKS = 3;

/** The longest that a worker can hold a message: Lambda's longest timeout. */
const LEASE_MAX_MS = 15 * 60_000;

/**
 * Takes a message for the operator. The invariant, without `force`:
 *
 *     claim          look           write
 *     |--- lease ----|--- margin ---|
 *                leaseUntil     now, by a clock that is not ahead of AWS's
 *
 * 1. At the look the message is in no worker's hands: it has no row, is FAILED or REJECTED, or is PROCESSING under a lease that
 *    has been over for the margin by which clocks may differ. An operator's own clock says nothing about that: a laptop that
 *    is half a minute ahead would see every lease as passed.
 * 2. At the write the row is the one that was seen: its status, its fence and its lease. A claim, a takeover or a renewal in
 *    between wins, and the message is looked at again. A lease that was over at the look is over at the write.
 */
async function decide(
  deps: OperationDeps,
  { force = false, ...resolution }: Resolution,
  status: FinalDecision['status'],
): Promise<Decision> {
  const { table, clock = systemClock, random = systemRandomBytes } = deps;
  const { consumer, eventId } = resolution;
  const inbox = { table, clock, random, consumer };
  const decision = { ...resolution, status, fence: mintToken(random) };
  const decided = { status: status === 'PROCESSED' ? 'resolved' : 'discarded' } as const;
  if (force && (await decideMessage(inbox, decision, NOT_FINAL))) return decided;
  for (let looks = 0; looks < LOOKS; looks += 1) {
    const row = readInboxRow(await table.get(inboxKey(consumer, eventId), { consistent: true }));
    const state = inboxState(row, await judgedAt(deps, readable(row)), CLOCK_SKEW_MS);
    if (state.is === 'unreadable') return { status: 'unreadable', problem: state.problem };
    if (state.is === 'leased') return { status: 'leased', until: state.until };
    if (state.is === 'processed' || state.is === 'discarded') return { status: state.is };
    if (await decideMessage(inbox, decision, asSeen(readable(row)))) return decided;
  }
  return { status: 'leased', until: clock.now() }; // it changes hands all the time
}

/**
 * The time by which the lease of a row is judged. Without a clock that can be trusted the lease is waited out: it was granted
 * after `claimedAt` by the worker's own clock, so as much time as lies between the two has passed by then. A row that is still
 * as it was seen has a lease that is over, and only such a row is written.
 */
async function judgedAt(deps: OperationDeps, row: InboxRow | undefined): Promise<number> {
  const { clock = systemClock, clockIsTrusted = true } = deps;
  if (clockIsTrusted || row?.status !== 'PROCESSING' || row.leaseUntil === undefined) return clock.now();
  const lastsMs = row.leaseUntil - (row.claimedAt ?? 0);
  await clock.sleep(lastsMs > 0 ? Math.min(lastsMs, LEASE_MAX_MS) : LEASE_MAX_MS);
  return Number.POSITIVE_INFINITY;
}

/**
 * Lets a message run that was rejected because its event is older than the inbox retention: its row may have expired, so
 * only somebody who knows that it was not processed can say so. It runs when it is redriven.
 *
 * @throws `NOT_TOO_OLD` when it was not rejected for that: nothing was changed
 */
export async function allowTooOld(deps: OperationDeps, note: MessageNote): Promise<void> {
  const { table, clock = systemClock, random = systemRandomBytes } = deps;
  const { consumer, eventId } = note;
  if (await allowMessage({ table, clock, random, consumer }, note)) return;
  const row = readInboxRow(await table.get(inboxKey(consumer, eventId), { consistent: true }));
  const found =
    row === undefined
      ? 'has no row'
      : isUnreadable(row)
        ? `has a row that cannot be read (${row.unreadable})`
        : `is ${[row.status, row.reason].filter(Boolean).join(', ')}`;
  throw new MailroomError(
    'NOT_TOO_OLD',
    `The message ${eventId} of ${consumer} ${found}; only one that is REJECTED as ${TOO_OLD} needs to be allowed. ` +
      'Any other can be redriven as it is.',
  );
}
