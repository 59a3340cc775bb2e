import type { Clock } from '../clock.ts';
import type { InboxMemory } from './inbox-history.ts';
import { asRow, type InboxRow } from './rows.ts';
import type { Item, Key, TransactAction } from './table.ts';

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

/** What the inbox says to a claim, and to every other transition that it refuses. */
export type Verdict =
  | { readonly status: 'claimed'; readonly claim: Claim }
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

/** Every verdict but that the message is ours. */
export type Refusal = Exclude<Verdict, { status: 'claimed' }>;

/**
 * What a row means before anything is tried: refused, or open to a claim, to one that takes it over from a worker whose lease
 * has passed, or to one that readmits a rejected message.
 */
type Judgement = Refusal | { readonly status: 'open' | 'abandoned' | 'readmit' };

/** Whether a judgement is a refusal. */
function isRefusal(judgement: Judgement): judgement is Refusal {
  return judgement.status !== 'open' && judgement.status !== 'abandoned' && judgement.status !== 'readmit';
}

/**
 * From this many claims in a row that ended without a result, a message runs alone: a claim that ends so may have been killed
 * by a neighbour in its batch, or robbed of its time. Only one that ran alone counts as an attempt: see ADR 19.
 */
export const ALONE_FROM = 2;

/** How many claims of a message in a row ended without a result. */
export function unfinishedOf({ unfinished }: InboxRow): number {
  return unfinished ?? 0;
}

/** Why a message that is older than the inbox retention, and has no row, is rejected. */
export const TOO_OLD = 'EVENT_TOO_OLD';

/** Its worker's lease has passed, or there is none. */
const LEASE_PASSED = '#status = :held AND NOT leaseUntil >= :now';

/** The message was not rejected under the SQS message id that it came with: another id is a redrive. */
const NOT_REJECTED = 'NOT contains(rejectedIds, :messageId)';

/** The row is in the very state in which it was read: a fence is new with each claim. A strange row may have none. */
function fencedBy({ fence }: InboxRow): string {
  return fence === undefined ? 'attribute_not_exists(fence)' : 'fence = :heldFence';
}

function fenceOf({ fence }: InboxRow): Item {
  return fence === undefined ? {} : { ':heldFence': fence };
}

/** Whether the next claim of a message nobody holds must be made alone. A takeover is one more claim without a result. */
export function mustRunAlone(row: InboxRow): boolean {
  return unfinishedOf(row) + (row.status === 'PROCESSING' ? 1 : 0) >= ALONE_FROM;
}

/** A condition on the inbox row, and the values in it. */
export interface Condition {
  readonly condition: string;
  readonly values: Item;
}

/** Who may have a message: the conditions of the inbox, and what a row that refused one means. */
export interface Conditions {
  /** Whether the inbox may have forgotten the event: without a row it must not run, because the row may have expired. */
  tooOld(message: Message): boolean;
  /**
   * The claim's condition, clause by clause: nobody has it (unless it is too old to know), or it failed and need not run
   * alone; and it was not rejected under this very SQS message id.
   */
  claimable(message: Message, alone: boolean): Condition;
  /** A row whose worker's lease has passed, in this very state. One without a lease is free at once. */
  abandoned(message: Message, row: InboxRow): Condition;
  /** Whatever nobody holds: for a rejection that needs no claim. */
  rejectable(message: Message): Condition;
  /** A REJECTED row that a redrive may open again: this very state, under another message id. */
  readmissible(message: Message, row: InboxRow): Condition;
  /** What the row means for this message, when it is not ours. The order of the tests matters: PROCESSED answers first. */
  judge(message: Message, row: InboxRow | undefined): Judgement;
  /** As `judge`, for a transition that was refused although nobody holds the row: another worker was quicker, or it must run alone. */
  refusalOf(message: Message, item: Item | undefined): Refusal;
}

/** Makes the conditions of one consumer's inbox. */
export function createConditions(clock: Clock, memory: InboxMemory): Conditions {
  const tooOld = (message: Message) => memory.forgotten(message.eventId) !== undefined;

  function claimable(message: Message, alone: boolean) {
    // AND binds more tightly than OR. In parentheses of its own it would be refused where it stands alone: `((…))`.
    const failed = alone ? '#status = :FAILED' : '#status = :FAILED AND NOT unfinished >= :aloneFrom';
    return {
      condition: `(${[...unknown(message), failed].join(' OR ')}) AND ${NOT_REJECTED}`,
      values: {
        ':FAILED': 'FAILED',
        ':messageId': message.messageId,
        ...(alone ? {} : { ':aloneFrom': ALONE_FROM }),
      },
    };
  }

  function abandoned(message: Message, row: InboxRow) {
    return {
      condition: `${LEASE_PASSED} AND ${fencedBy(row)} AND ${NOT_REJECTED}`,
      values: {
        ':held': 'PROCESSING',
        ':now': clock.now(),
        ':messageId': message.messageId,
        ...fenceOf(row),
      },
    };
  }

  function rejectable(message: Message) {
    return {
      condition: `(${[...unknown(message), '#status = :FAILED', `(${LEASE_PASSED})`].join(' OR ')}) AND ${NOT_REJECTED}`,
      values: {
        ':FAILED': 'FAILED',
        ':held': 'PROCESSING',
        ':now': clock.now(),
        ':messageId': message.messageId,
      },
    };
  }

  /** A message without a row may be claimed, unless its row may have expired. */
  function unknown(message: Message): string[] {
    return tooOld(message) ? [] : ['attribute_not_exists(PK)'];
  }

  function readmissible(message: Message, row: InboxRow) {
    return {
      condition: `#status = :REJECTED AND ${fencedBy(row)} AND ${NOT_REJECTED}`,
      values: { ':REJECTED': 'REJECTED', ':messageId': message.messageId, ...fenceOf(row) },
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
    // Written by a newer version, or by hand: whoever does not know what it means leaves it alone.
    if (row.status !== 'PROCESSING') return { status: 'unreadable' };
    const until = typeof row.leaseUntil === 'number' ? row.leaseUntil : 0;
    if (until < clock.now()) return { status: 'abandoned' };
    return { status: 'leased', until, endsBy: row.endsBy ?? until };
  }

  function refusalOf(message: Message, item: Item | undefined): Refusal {
    const row = rowOf(item);
    const judgement = judge(message, row);
    if (isRefusal(judgement)) return judgement;
    if (row !== undefined && mustRunAlone(row)) return { status: 'suspect' };
    const now = clock.now();
    return { status: 'leased', until: now, endsBy: now };
  }

  return { tooOld, claimable, abandoned, rejectable, readmissible, judge, refusalOf };
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
