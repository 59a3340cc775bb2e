import type { Clock } from '../clock.ts';
import { asRow, type InboxRow } from '../rows.ts';
import type { Item, Key, TransactAction } from '../table.ts';
import type { InboxMemory } from './inbox-history.ts';

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
  /** The error of the attempt before, where there was one. */
  readonly lastError?: string | undefined;
}

/** What the inbox says to a claim, and to every other transition that it refuses. */
export type Verdict =
  | { readonly status: 'claimed'; readonly claim: Claim }
  /** Somebody else holds it. */
  | { readonly status: 'leased'; readonly until: number; readonly endsBy: number }
  /** Its worker's lease has passed: it may be taken over, alone and last. */
  | { readonly status: 'abandoned'; readonly attempts: number }
  | { readonly status: 'processed'; readonly result: string | undefined }
  | { readonly status: 'rejected'; readonly reason: string }
  /** No row, and the inbox may have forgotten the event: its row may have expired, so it must not run. */
  | { readonly status: 'too-old'; readonly why: string };

/** Every verdict but that the message is ours. */
export type Refusal = Exclude<Verdict, { status: 'claimed' }>;

/** What a row means before anything is tried: refused, or open to a claim, or to one that readmits a rejected message. */
type Judgement = Refusal | { readonly status: 'open' | 'readmit' };

/** Whether a judgement is a refusal. */
function isRefusal(judgement: Judgement): judgement is Refusal {
  return judgement.status !== 'open' && judgement.status !== 'readmit';
}

/** Why a message that is older than the inbox retention, and has no row, is rejected. */
export const TOO_OLD = 'EVENT_TOO_OLD';

/** A condition on the inbox row, and the values in it. */
interface Condition {
  readonly condition: string;
  readonly values: Item;
}

/** Who may have a message: the conditions of the inbox, and what a row that refused one means. */
export interface Conditions {
  /** Whether the inbox may have forgotten the event: without a row it must not run, because the row may have expired. */
  tooOld(message: Message): boolean;
  /**
   * The claim's condition, clause by clause: nobody has it (unless it is too old to know), or it failed, or its
   * worker's lease has passed; and it was not rejected under this very SQS message id.
   */
  claimable(message: Message, takeOver: boolean, now: number): Condition;
  /** A REJECTED row that a redrive may open again: this very state, under another message id. */
  readmissible(message: Message, row: InboxRow): Condition;
  /** What the row means for this message, when it is not ours. The order of the tests matters: PROCESSED answers first. */
  judge(message: Message, row: InboxRow | undefined): Judgement;
  /** As `judge`, for a transition that found the row neither ours nor claimable by now: somebody was quicker. */
  refusalOf(message: Message, item: Item | undefined): Refusal;
}

/** Makes the conditions of one consumer's inbox. */
export function createConditions(clock: Clock, memory: InboxMemory): Conditions {
  const tooOld = (message: Message) => memory.forgotten(message.eventId) !== undefined;

  function claimable(message: Message, takeOver: boolean, now: number) {
    const clauses = [
      ...(tooOld(message) ? [] : ['attribute_not_exists(PK)']),
      '#status = :FAILED',
      ...(takeOver ? ['(#status = :PROCESSING AND leaseUntil < :now)'] : []),
    ];
    return {
      condition: `(${clauses.join(' OR ')}) AND NOT contains(rejectedIds, :messageId)`,
      values: {
        ':FAILED': 'FAILED',
        ':messageId': message.messageId,
        ...(takeOver ? { ':PROCESSING': 'PROCESSING', ':now': now } : {}),
      },
    };
  }

  function readmissible(message: Message, row: InboxRow) {
    return {
      condition: '#status = :REJECTED AND fence = :heldFence AND NOT contains(rejectedIds, :messageId)',
      values: { ':REJECTED': 'REJECTED', ':heldFence': row.fence, ':messageId': message.messageId },
    };
  }

  function judge(message: Message, row: InboxRow | undefined): Judgement {
    if (row === undefined) {
      const why = memory.forgotten(message.eventId);
      return why === undefined ? { status: 'open' } : { status: 'too-old', why };
    }
    if (row.status === 'PROCESSED' || row.status === 'DISCARDED')
      return { status: 'processed', result: row.result };
    const reason = row.reason ?? 'UNKNOWN';
    if (row.rejectedIds?.has(message.messageId)) return { status: 'rejected', reason };
    if (row.status === 'REJECTED') {
      return reason === TOO_OLD && !row.runAnyway ? { status: 'rejected', reason } : { status: 'readmit' };
    }
    if (row.status === 'FAILED') return { status: 'open' };
    const until = row.leaseUntil ?? 0;
    if (until < clock.now()) return { status: 'abandoned', attempts: row.attempts };
    return { status: 'leased', until, endsBy: row.endsBy ?? until };
  }

  function refusalOf(message: Message, item: Item | undefined): Refusal {
    const judgement = judge(message, rowOf(item));
    if (isRefusal(judgement)) return judgement;
    const now = clock.now();
    return { status: 'leased', until: now, endsBy: now };
  }

  return { tooOld, claimable, readmissible, judge, refusalOf };
}

/** The condition of every transition but the claim. */
export const MINE = '#status = :heldStatus AND fence = :heldFence';

/** The values in {@link MINE}. */
export function mine(claim: Claim): Item {
  return { ':heldStatus': 'PROCESSING', ':heldFence': claim.fence };
}

/** The condition that a message is still ours, for a transaction that must not happen otherwise. */
export function heldBy(claim: Claim, key: Key): TransactAction {
  return {
    ConditionCheck: {
      Key: { ...key },
      ConditionExpression: MINE,
      ExpressionAttributeNames: { '#status': 'status' },
      ExpressionAttributeValues: mine(claim),
    },
  };
}

/** The inbox row of an item as the table handed it out, where there was one. */
export function rowOf(item: Item | undefined): InboxRow | undefined {
  return item === undefined ? undefined : asRow<InboxRow>(item);
}

/** Whether a row is held by the claim with this fence. */
export function isOurs(row: InboxRow | undefined, fence: string): boolean {
  return row?.status === 'PROCESSING' && row.fence === fence;
}
