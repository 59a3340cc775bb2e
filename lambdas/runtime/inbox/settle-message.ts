import { CLOCK_SKEW_MS, systemClock } from '../base/clock.ts';
import { mintToken, systemRandomBytes } from '../store/event-id.ts';
import type { DiscardedRow, InboxRow, PlaceInOrder, ProcessedRow } from '../store/inbox-row.ts';
import { type LastRaise, passedOver } from '../store/last-sequence.ts';
import type { Note, OperationDeps } from '../store/operation-record.ts';
import { readable } from '../store/stored-rows.ts';
import type { TransactAction } from '../store/table.ts';
import { asSeen, NOT_FINAL } from './inbox-conditions.ts';
import type { FinalDecision, InboxChanges } from './inbox-operator.ts';
import { inboxState } from './inbox-state.ts';
import {
  areChecked,
  type EffectsChecked,
  effectState,
  effectsToCheck,
  type StartedEffect,
  startedEffects,
} from './started-effects.ts';

/** Dependencies of an operator's decisions about messages, in any store. */
export interface SettleDeps extends Omit<OperationDeps, 'table'> {
  readonly inboxChanges: InboxChanges;
}

/** A message, with the operator who decides about it and the reason. */
export interface MessageNote extends Note {
  readonly consumer: string;
  readonly eventId: string;
}

/** A message to settle without its handler, with the operator and the reason. */
export interface Settlement extends MessageNote {
  /**
   * Takes the message from a worker that still holds it: all further writes by this worker are refused. Its effects outside
   * DynamoDB cannot be undone. @default false
   */
  readonly force?: boolean | undefined;
  /**
   * The operator has asked the providers of every side effect that was started for the message. Without it, a message with an
   * effect that has happened, or may have, is left unchanged; so is one whose row cannot be read. A digest covers only the effects that
   * the operator was shown: if the row has others by now, it is left unchanged, too. @default false
   */
  readonly effectsChecked?: EffectsChecked | undefined;
  /** Changes nothing if the consumer has a row of the message. @default false */
  readonly unlessReceived?: boolean | undefined;
  /**
   * Makes the writes that commit in the decision's transaction, from the row as it was read; `undefined` if the message has none. It
   * is called again if the row has changed. @default no writes
   */
  readonly writes?: ((row: InboxRow | undefined) => Promise<readonly TransactAction[]>) | undefined;
  /** As `writes`, in the transaction `tx` of a store that has such: it writes there. @default no writes */
  readonly work?: ((row: InboxRow | undefined, tx: unknown) => Promise<void>) | undefined;
  /**
   * `writes` or `work` is made from the results of the completed effects: only those that may have happened need a check. @default false
   */
  readonly readsResults?: boolean | undefined;
  /** Stored with the decision, to recognize it. @default none */
  readonly commitId?: string | undefined;
  /** The place of an ordered message in its sequence, if it has no row: a row has its own. @default none */
  readonly order?: PlaceInOrder | undefined;
  /**
   * The consumer has a strict order, or has none: a place of the other kind that its row has, from before, does not count.
   *
   * @default the place of its row counts
   */
  readonly isStrict?: boolean | undefined;
  /** Another event is sent in its place, and has its number in the sequence, which stays next. Only of a discard. @default none */
  readonly replacedBy?: string | undefined;
}

/**
 * The result of an operator's decision. `resolved` and `discarded`: it is made, now or before; `processed`: the handler was first. In
 * all other cases, nothing was changed. `leased`: a worker may hold the message until `until`; `unreadable`: it is unknown whether a
 * worker holds it; `received`: the message has a row, and only one without a row should have been decided; `effects-unchecked`: these side
 * effects have happened, or may have; `row-deleted`: the message was rejected and its row is gone, and with it the record of its effects;
 * `out-of-order`: the event before it in a strict order, `missing`, was not applied, so none after it can be passed over.
 */
export type Decision =
  | { readonly status: 'resolved' | 'received' | 'row-deleted' }
  /** `earlier`: the row of a message that was settled before. */
  | { readonly status: 'processed' | 'discarded'; readonly earlier?: ProcessedRow | DiscardedRow }
  | { readonly status: 'leased'; readonly until: number }
  | { readonly status: 'effects-unchecked'; readonly effects: readonly StartedEffect[] }
  | { readonly status: 'out-of-order'; readonly missing: number }
  | { readonly status: 'unreadable'; readonly problem: string };

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
 *    at least the clock margin ago. A store that has a clock decides by it. An operator's clock cannot: a laptop that is half a minute ahead would treat
 *    running leases as passed.
 * 2. At the write, the row is unchanged since the read: its status, its fence and its lease. A claim, a takeover or a renewal in
 *    between wins, and the message is read again. A lease that was over at the read is over at the write.
 * 3. Unless the operator has checked the effects, none that was started at the read can have happened. A digest of those that were shown
 *    covers no others, nor a later run of one. At the write the row has the effects of the read. This holds with `force`, too, while a
 *    worker may start another one.
 * 4. `writes` commit if and only if this transaction settles the message, and the effects from which they were made are those at the
 *    write: they commit at most once, and never beside a commit of its handler.
 * 5. Without `force`, `writes` are made only once every function that ran an effect has stopped by every clock: its result is stored, or
 *    never will be.
 * 6. A pointer of a rejected message without its row shows that someone deleted the row, and with it the results of its effects. The
 *    decision then needs the check of the operator, and none that reads results is made.
 *
 * 7. A strict message that ends without its handler is passed over in the same transaction: its number is next at the read, and at the
 * write. Otherwise the later events would wait for it, or one that was not applied would count as applied. The exception is an event
 * that another one replaces: the row names that one in the same write, in `replacedBy`, which no operator's text reaches.
 *
 * @throws `TRANSACTION_CANCELLED` if one of `writes` was refused: nothing was changed
 */
export async function settleMessage(
  deps: SettleDeps,
  {
    force = false,
    unlessReceived = false,
    effectsChecked = false,
    readsResults = false,
    writes,
    work,
    order: given,
    isStrict,
    ...note
  }: Settlement,
  status: FinalDecision['status'],
): Promise<Decision> {
  const { inboxChanges: changes, clock = systemClock, random = systemRandomBytes } = deps;
  const { consumer, eventId } = note;
  const decision = { ...note, status, fence: mintToken(random) };
  const decided = { status: status === 'PROCESSED' ? 'resolved' : 'discarded' } as const;
  const commits = writes !== undefined || work !== undefined;
  const takesAny = force && effectsChecked === true && !commits;
  for (let looks = 0; looks < LOOKS; looks += 1) {
    const message = await changes.read(consumer, eventId);
    const { row, order: own } = message;
    const now = () => message.now ?? clock.now();
    const isPast = isStrict !== undefined && (own?.mode === 'strict') !== isStrict;
    const order = (isPast ? undefined : own) ?? given;
    const place =
      order === undefined || note.replacedBy !== undefined ? {} : await placeToRaise(changes, order, status);
    if (takesAny && !('missing' in place)) {
      const made = await message.decide(decision, NOT_FINAL, { raise: place.raise });
      if (made === 'done') return decided;
    }
    if (unlessReceived && row !== undefined) return { status: 'received' };
    const judged = force ? now() : (message.now ?? (await judgedAt(deps, readable(row))));
    const state = inboxState(row, judged, CLOCK_SKEW_MS);
    if (state.is === 'unreadable') {
      // Force settles such a row: only the number before its own is in the way.
      if (takesAny && 'missing' in place) return { status: 'out-of-order', missing: place.missing };
      return { status: 'unreadable', problem: state.problem };
    }
    if (state.is === 'leased' && !force) return { status: 'leased', until: state.until };
    if (state.is === 'processed' || state.is === 'discarded') return { status: state.is, earlier: state.row };
    const seen = readable(row);
    const until = !commits || force ? undefined : effectsRunUntil(seen, now());
    if (until !== undefined) return { status: 'leased', until };
    const started = effectsToCheck(startedEffects(consumer, eventId, seen, now()));
    const effects = started.filter(({ state: ended }) => !readsResults || ended !== 'completed');
    if (effects.length > 0 && !areChecked(effectsChecked, started))
      return { status: 'effects-unchecked', effects };
    if ('missing' in place) return { status: 'out-of-order', missing: place.missing };
    const { raise } = place;
    const condition = asSeen(seen);
    const needsRow = seen === undefined && (readsResults || !effectsChecked);
    const made = await message.decide(decision, condition, {
      writes: await writes?.(seen),
      work: work && ((tx) => work(seen, tx)),
      raise,
      needsRow,
    });
    if (made === 'row-deleted') return { status: made };
    if (made === 'done') return decided;
  }
  return { status: 'leased', until: clock.now() }; // its holder keeps changing
}

/** The change that passes over an ordered message in the transaction that ends it, or the number that must be applied before. */
async function placeToRaise(
  { lastSequence }: Pick<InboxChanges, 'lastSequence'>,
  order: PlaceInOrder,
  status: FinalDecision['status'],
): Promise<{ readonly raise?: LastRaise | undefined } | { readonly missing: number }> {
  const { mode, sequence, key } = order;
  // Only work that is done counts as the latest state.
  if (mode === 'latest' && status === 'DISCARDED') return {};
  const seen = await lastSequence(key);
  if (mode === 'latest') return { raise: seen.last < sequence ? { key, sequence, seen } : undefined };
  return seen.last < sequence - 1 ? { missing: seen.last + 1 } : { raise: passedOver(order, seen) };
}

/** Returns the time until which effects of a message may still run in a function that has lost it; `undefined` if none does. */
function effectsRunUntil(row: InboxRow | undefined, now: number): number | undefined {
  const running = Object.values(row?.effects ?? {}).filter(
    (effect) => effectState(effect, now) === 'running',
  );
  return running.length === 0 ? undefined : Math.max(...running.map(({ endsBy }) => endsBy)) + CLOCK_SKEW_MS;
}

/**
 * Returns the time by which the lease of a row is judged. Without a trusted clock, it first waits for the lease to end:
 * `claimedAt` and `leaseUntil` come from the worker's clock, so a wait of their difference is long enough. If the row is unchanged
 * after the wait, its lease is over; if it has changed, the conditional write is refused.
 */
async function judgedAt(deps: SettleDeps, row: InboxRow | undefined): Promise<number> {
  const { clock = systemClock, clockIsTrusted = true } = deps;
  if (clockIsTrusted || row?.status !== 'PROCESSING' || row.leaseUntil === undefined) return clock.now();
  const lastsMs = row.leaseUntil - (row.claimedAt ?? 0);
  await clock.sleep(lastsMs > 0 ? Math.min(lastsMs, LEASE_MAX_MS) : LEASE_MAX_MS);
  return Number.POSITIVE_INFINITY;
}
