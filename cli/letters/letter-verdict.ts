import type { Check } from '../../lambdas/runtime/consume/check-messages.ts';
import type { ConsumerEntry } from '../../lambdas/runtime/operations/directory.ts';
import { eventIdTime, isEventId, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { TOO_OLD } from '../../lambdas/runtime/store/inbox-conditions.ts';
import { shortestRetentionDays } from '../../lambdas/runtime/store/inbox-history.ts';
import { inboxState } from '../../lambdas/runtime/store/inbox-state.ts';
import {
  asRow,
  type InboxHistory,
  type InboxRow,
  inboxHistoryKey,
} from '../../lambdas/runtime/store/rows.ts';
import { isUnreadable, readOutboxRow, type UnreadableRow } from '../../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';
import { eachOf } from '../reading/rows-reader.ts';
import type { DeadItem, DeathPlace } from './letters.ts';
import { rangeOf } from './stream-letter.ts';

/**
 * What would become of a letter that is redriven: it is `handled` already; it `runs` again; it `fails` still, because today's
 * code cannot read it; it is `too-old` to know whether it ran before; it is `busy`: a worker holds the lease of its message, or
 * it is about to be tried again; or its row is `unreadable`, and nobody can say.
 */
export type LetterVerdict = 'handled' | 'runs' | 'fails' | 'too-old' | 'busy' | 'unreadable';

/** A letter and what would become of it. */
export interface JudgedLetter extends DeadItem {
  readonly verdict: LetterVerdict;
  /** Why it would not run: an error code, e.g. `INVALID_PAYLOAD`, and what it says. */
  readonly code?: string | undefined;
  readonly message?: string | undefined;
}

/** What letters are judged with. */
export interface JudgeDeps {
  readonly table: Table;
  /** Asks the deployed consumer which bodies it can read. */
  readonly check: (consumer: ConsumerEntry, bodies: readonly string[]) => Promise<Check[]>;
  /** Epoch milliseconds. */
  readonly now: number;
}

const DAY_MS = 86_400_000;

/** Says what would become of each letter. It changes nothing. */
export async function judgeLetters(
  deps: JudgeDeps,
  place: DeathPlace,
  letters: readonly DeadItem[],
): Promise<JudgedLetter[]> {
  if (place.kind === 'dead') return eachOf(letters, (letter) => judgeDead(deps.table, letter));
  if (place.kind === 'stream' || place.consumer === undefined) return letters.map(judgeStream);
  const { consumer } = place;
  const open = letters.filter(({ row }) => settled(row, deps.now) === undefined);
  const checks = await deps.check(
    consumer,
    open.map(({ received }) => received?.body ?? ''),
  );
  const history = await deps.table.get(inboxHistoryKey(consumer.name), { consistent: true });
  return letters.map((letter): JudgedLetter => {
    const verdict = settled(letter.row, deps.now);
    if (verdict !== undefined) return { ...letter, verdict, message: problemOf(letter.row) };
    const check = checks[open.indexOf(letter)];
    if (check?.ok === false) return { ...letter, verdict: 'fails', code: check.code, message: check.message };
    const daysSince = (mintedAt: number) =>
      shortestRetentionDays(history && asRow<InboxHistory>(history), mintedAt, consumer.inboxRetentionDays);
    const tooOld = isTooOld(letter, daysSince, consumer, deps.now);
    return tooOld ? { ...letter, verdict: 'too-old', code: TOO_OLD } : { ...letter, verdict: 'runs' };
  });
}

/** What the inbox says of a message already, so that its letter must not be run again; `undefined` when it may. */
export function settled(
  row: DeadItem['row'],
  now: number,
): Extract<LetterVerdict, 'handled' | 'busy' | 'unreadable'> | undefined {
  const state = inboxState(row, now);
  if (state.is === 'processed' || state.is === 'discarded') return 'handled';
  if (state.is === 'unreadable') return 'unreadable';
  if (state.is === 'leased') return 'busy';
  // The consumer's queue shows another copy of it soon.
  if (state.is === 'failed' && (state.row.retryAt ?? 0) > now) return 'busy';
  return undefined;
}

function problemOf(row: InboxRow | UnreadableRow | undefined): string | undefined {
  return isUnreadable(row) ? row.unreadable : undefined;
}

/** As `judge` in inbox-conditions.ts: the consumer itself would reject it. */
function isTooOld(
  { row, eventId }: DeadItem,
  retentionDaysSince: (mintedAt: number) => number,
  { inboxSince = 0 }: ConsumerEntry,
  now: number,
): boolean {
  if (row !== undefined)
    return !isUnreadable(row) && row.status === 'REJECTED' && row.reason === TOO_OLD && !row.runAnyway;
  if (eventId === undefined) return false;
  const mintedAt = eventIdTime(eventId);
  return mintedAt < inboxSince || now - mintedAt > retentionDaysSince(mintedAt) * DAY_MS;
}

async function judgeDead(table: Table, letter: DeadItem): Promise<JudgedLetter> {
  if (!isEventId(letter.id))
    return { ...letter, verdict: 'unreadable', message: 'its pointer does not name an event' };
  const row = readOutboxRow(await table.get(outboxKeyOf(letter.id), { consistent: true }));
  if (isUnreadable(row)) return { ...letter, verdict: 'unreadable', message: row.unreadable };
  return { ...letter, verdict: row?.status === 'DEAD' ? 'runs' : 'handled' };
}

function judgeStream(letter: DeadItem): JudgedLetter {
  if (rangeOf(letter) !== undefined) return { ...letter, verdict: 'runs' };
  return {
    ...letter,
    verdict: 'fails',
    code: 'UNREADABLE_LETTER',
    message:
      'It names no batch of the stream. Sweep from before it was sent (mailroom sweep --since), then discard it.',
  };
}
