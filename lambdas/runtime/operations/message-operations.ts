import { CLOCK_SKEW_MS, systemClock } from '../base/clock.ts';
import { MailroomError } from '../base/errors.ts';
import { TOO_OLD } from '../inbox/inbox-conditions.ts';
import {
  allowMessage,
  asSeen,
  decideMessage,
  type FinalDecision,
  NOT_FINAL,
} from '../inbox/inbox-operator.ts';
import { inboxState } from '../inbox/inbox-state.ts';
import { effectsToCheck, type StartedEffect, startedEffects } from '../inbox/started-effects.ts';
import { eventIdTime, isUnreadableId, mintToken, systemRandomBytes } from '../store/event-id.ts';
import { isForeignEventId } from '../store/foreign-id.ts';
import { inboxKey } from '../store/keys.ts';
import type { Note, OperationDeps } from '../store/operation-record.ts';
import type { InboxRow } from '../store/rows.ts';
import { isUnreadable, readable, readInboxRow, type UnreadableRow } from '../store/stored-rows.ts';

/** A message, with the operator who decides about it and the reason. */
export interface MessageNote extends Note {
  readonly consumer: string;
  readonly eventId: string;
}

/** A message to resolve or discard, with the operator and the reason. */
export interface Resolution extends MessageNote {
  /**
   * Takes the message from a worker that still holds it: all further writes by this worker are refused. Its effects outside
   * DynamoDB cannot be undone. @default false
   */
  readonly force?: boolean | undefined;
  /**
   * The operator has asked the providers of every side effect that was started for the message. Without it, a message with an
   * effect that has happened, or may have, is left unchanged; so is one whose row cannot be read. @default false
   */
  readonly effectsChecked?: boolean | undefined;
  /** Changes nothing if the consumer has a row of the message. @default false */
  readonly unlessReceived?: boolean | undefined;
}

/**
 * The result of an operator's decision. `leased`: a worker may hold the message until `until`; `unreadable`: it is unknown whether
 * a worker holds it; `received`: the message has a row, and only one without a row was to be decided; `effects-unchecked`: these
 * side effects have happened, or may have. Nothing was changed.
 */
export type Decision =
  | { readonly status: 'resolved' | 'processed' | 'discarded' | 'received' }
  | { readonly status: 'leased'; readonly until: number }
  | { readonly status: 'effects-unchecked'; readonly effects: readonly StartedEffect[] }
  | { readonly status: 'unreadable'; readonly problem: string };

/**
 * Sets a message PROCESSED without running its handler, because its work was done by hand. The row gets a new fence, which
 * prevents further writes by a worker that is still running, and a REJECTED pointer is removed in the same transaction. If the
 * message is redelivered, it is absorbed as a duplicate.
 *
 * @returns the state of the row: `resolved`; `processed` or `discarded` if it was so before; `leased`, `effects-unchecked` or
 * `unreadable` if nothing was changed
 * @throws `BAD_EVENT_ID` if `eventId` is neither an event id nor `unreadable-<SQS message id>`
 *
 * @example
 * ```ts
 * await resolveMessage({ table }, { consumer: 'payments', eventId, reason: 'charged by phone', by: 'ada' });
 * ```
 */
export async function resolveMessage(deps: OperationDeps, resolution: Resolution): Promise<Decision> {
  const { eventId } = resolution;
  if (!isUnreadableId(eventId) && !isForeignEventId(eventId)) eventIdTime(eventId); // throws if it is not an event id
  return decide(deps, resolution, 'PROCESSED');
}

/**
 * Discards a message permanently: it becomes DISCARDED and never runs, even if it is redelivered. The row gets a new fence, and a
 * REJECTED pointer is removed in the same transaction. Refused if the message is processed or a worker holds it.
 *
 * @param discard.eventId - the event's id, or `unreadable-<SQS message id>` for a message without one
 * @returns the state of the row: `discarded` now or before, `processed`; `leased`, `effects-unchecked` or `unreadable` if nothing was
 * changed
 */
export async function discardMessage(
  deps: OperationDeps,
  discard: Omit<Resolution, 'force'>,
): Promise<Decision> {
  return decide(deps, discard, 'DISCARDED');
}

/** The maximum number of reads of a message whose row changes between the read and the write. */
const LOOKS = 3;

/** The longest time that a worker can hold a message, milliseconds: Lambda's maximum timeout. */
const LEASE_MAX_MS = 15 * 60_000;

/**
 * Takes a message for the operator. The invariant, without `force`:
 *
 *     claim          read           write
 *     |--- lease ----|--- margin ---|
 *                leaseUntil     now, by a clock that is not ahead of AWS's
 *
 * 1. At the read, no worker holds the message: it has no row, is FAILED or REJECTED, or is PROCESSING under a lease that ended
 *    at least the clock margin ago. An operator's own clock cannot decide that: a laptop that is half a minute ahead would treat
 *    running leases as passed.
 * 2. At the write, the row is unchanged since the read: its status, its fence and its lease. A claim, a takeover or a renewal in
 *    between wins, and the message is read again. A lease that was over at the read is over at the write.
 * 3. Unless the operator has checked the effects, none that was started at the read can have happened, and at the write the row has the
 *    same effects. This holds with `force`, too, while a worker may start another one.
 */
async function decide(
  deps: OperationDeps,
  { force = false, unlessReceived = false, effectsChecked = false, ...resolution }: Resolution,
  status: FinalDecision['status'],
): Promise<Decision> {
  const { table, clock = systemClock, random = systemRandomBytes } = deps;
  const { consumer, eventId } = resolution;
  const inbox = { table, clock, random, consumer };
  const decision = { ...resolution, status, fence: mintToken(random) };
  const decided = { status: status === 'PROCESSED' ? 'resolved' : 'discarded' } as const;
  if (force && effectsChecked && (await decideMessage(inbox, decision, NOT_FINAL))) return decided;
  for (let looks = 0; looks < LOOKS; looks += 1) {
    const row = readInboxRow(await table.get(inboxKey(consumer, eventId), { consistent: true }));
    if (unlessReceived && row !== undefined) return { status: 'received' };
    const judged = force ? clock.now() : await judgedAt(deps, readable(row));
    const state = inboxState(row, judged, CLOCK_SKEW_MS);
    if (state.is === 'unreadable') return { status: 'unreadable', problem: state.problem };
    if (state.is === 'leased' && !force) return { status: 'leased', until: state.until };
    if (state.is === 'processed' || state.is === 'discarded') return { status: state.is };
    const effects = effectsToCheck(startedEffects(consumer, eventId, readable(row), clock.now()));
    if (effects.length > 0 && !effectsChecked) return { status: 'effects-unchecked', effects };
    if (await decideMessage(inbox, decision, asSeen(readable(row), effectsChecked))) return decided;
  }
  return { status: 'leased', until: clock.now() }; // its holder keeps changing
}

/**
 * Returns the time by which the lease of a row is judged. Without a trusted clock, it first waits for the lease to end:
 * `claimedAt` and `leaseUntil` come from the worker's clock, so a wait of their difference is long enough. If the row is unchanged
 * after the wait, its lease is over; if it has changed, the conditional write is refused.
 */
async function judgedAt(deps: OperationDeps, row: InboxRow | undefined): Promise<number> {
  const { clock = systemClock, clockIsTrusted = true } = deps;
  if (clockIsTrusted || row?.status !== 'PROCESSING' || row.leaseUntil === undefined) return clock.now();
  const lastsMs = row.leaseUntil - (row.claimedAt ?? 0);
  await clock.sleep(lastsMs > 0 ? Math.min(lastsMs, LEASE_MAX_MS) : LEASE_MAX_MS);
  return Number.POSITIVE_INFINITY;
}

/**
 * Allows a message to run that was rejected because its event is older than the inbox retention. Its row may have expired, so only
 * an operator who knows that it was not processed can allow it. It runs when it is redriven.
 *
 * @throws `NOT_TOO_OLD` if it was not rejected for that reason: nothing was changed
 */
export async function allowTooOld(deps: OperationDeps, note: MessageNote): Promise<void> {
  const { table, clock = systemClock, random = systemRandomBytes } = deps;
  const { consumer, eventId } = note;
  if (await allowMessage({ table, clock, random, consumer }, note)) return;
  const row = readInboxRow(await table.get(inboxKey(consumer, eventId), { consistent: true }));
  throw notTooOld(note, row);
}

/** The refusal to allow a message that was not rejected as too old, with the state of its row. */
export function notTooOld(
  { consumer, eventId }: Pick<MessageNote, 'consumer' | 'eventId'>,
  row: InboxRow | UnreadableRow | undefined,
): MailroomError {
  const found =
    row === undefined
      ? 'has no row'
      : isUnreadable(row)
        ? `has a row that cannot be read (${row.unreadable})`
        : `is ${statusOf(row)}`;
  return new MailroomError(
    'NOT_TOO_OLD',
    `The message ${eventId} of ${consumer} ${found}; only one that is REJECTED as ${TOO_OLD} needs to be allowed. ` +
      'Any other message can be redriven without this.',
  );
}

function statusOf(row: InboxRow): string {
  return row.status === 'REJECTED' && row.reason ? `${row.status}, ${row.reason}` : row.status;
}
