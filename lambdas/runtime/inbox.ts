import type { Clock } from './clock.ts';
import {
  type CancellationReason,
  errorCode,
  errorMessage,
  FenceLost,
  fingerprint,
  isConditionFailed,
  isTransactionCancelled,
  TransactionCancelled,
} from './errors.ts';
import { eventIdTime, isEventId, mintToken, type RandomBytes } from './event-id.ts';
import { transactWithRetry } from './retry.ts';
import {
  asRow,
  expiresAt,
  type InboxRow,
  inboxKey,
  type RejectedPointer,
  rejectedKey,
  SCHEMA,
} from './rows.ts';
import type { Item, Key, Table, TransactAction, Update } from './table.ts';

/**
 * The inbox: who may work on a message, and whether its work is done. One row a message and consumer.
 *
 *     claim            renew            renew            complete
 *       |---- lease ----|---- lease ----|---- lease ------|
 *       |------------------- endsBy: the function is stopped -------------|
 *
 * The **fence** is a random token of one claim. Renew, release, reject, complete and commit are each conditional
 * on `status = PROCESSING AND fence = mine`, so a worker that lost its lease can change nothing. Time only says
 * when somebody else may try; it never decides who is right.
 */
export interface InboxDeps {
  readonly table: Table;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly consumer: string;
  readonly leaseMs: number;
  readonly inboxRetentionDays: number;
}

/** A message as it was received. */
export interface Message {
  readonly eventId: string;
  /** SQS's message id: another one for every redrive. */
  readonly messageId: string;
  readonly type?: string | undefined;
}

/** A claim that was granted: the right to work on a message until `leaseUntil`. */
export interface Claim {
  readonly message: Message;
  readonly attempt: number;
  readonly fence: string;
  readonly leaseUntil: number;
  /** When the function is stopped at the latest. */
  readonly endsBy: number;
  /** The error of the attempt before, where there was one. */
  readonly lastError?: string | undefined;
}

/** What the inbox says to a claim, and to every other transition that it refuses. */
export type Verdict =
  | { readonly status: 'claimed'; readonly claim: Claim }
  /** Somebody else holds it. */
  | { readonly status: 'leased'; readonly until: number; readonly endsBy: number }
  /** Its owner's lease has passed: it may be taken over, alone and last. */
  | { readonly status: 'expired'; readonly attempts: number }
  | { readonly status: 'processed'; readonly result: string | undefined }
  | { readonly status: 'rejected'; readonly reason: string }
  /** No row, and the event is older than the inbox retention: its row may have expired, so it must not run. */
  | { readonly status: 'too-old' };

/** Every verdict but that the message is ours. */
export type Refusal = Exclude<Verdict, { status: 'claimed' }>;

/** What a row means before anything is tried: refused, or open to a claim, or to one that readmits a rejected message. */
type Judgement = Refusal | { readonly status: 'open' | 'readmit' };

function isRefusal(judgement: Judgement): judgement is Refusal {
  return judgement.status !== 'open' && judgement.status !== 'readmit';
}

const DAY_MS = 86_400_000;

/** Results longer than this are not kept on the row: it would cost more than it is worth. */
const RESULT_MAX_CHARS = 4_096;

export const TOO_OLD = 'EVENT_TOO_OLD';

export interface Inbox {
  /**
   * Claims a message.
   *
   * @param options.takeOver - whether a message whose owner's lease has passed may be taken over
   * @param options.endsBy - when the function is stopped, epoch milliseconds
   */
  claim(message: Message, options: { readonly takeOver: boolean; readonly endsBy: number }): Promise<Verdict>;
  /** Extends the lease, never past `endsBy`. @throws `FENCE_LOST` when the message is not ours any more */
  renew(claim: Claim): Promise<Claim>;
  /** The handler failed: FAILED, with the error; anybody may claim it. Refused: what the row says instead. */
  release(claim: Claim, error: unknown): Promise<Refusal | undefined>;
  /** Lets go of the message as if this claim had not been. Refused: what the row says instead. */
  giveBack(claim: Claim): Promise<Refusal | undefined>;
  /** The message can never succeed. Refused: what the row says instead. */
  reject(claim: Claim, error: unknown): Promise<Refusal | undefined>;
  /** Rejects a message that nobody claimed, on the claim's own condition. */
  rejectUnclaimed(message: Message, error: unknown): Promise<Refusal>;
  /** The work is done: PROCESSED. Refused: what the row says instead. */
  complete(claim: Claim, result: unknown): Promise<Refusal | undefined>;
  /** Domain writes, events and PROCESSED in one transaction, under the claim's fence. */
  commit(claim: Claim, writes: readonly TransactAction[]): Promise<void>;
  /**
   * The same without a claim: the condition on the inbox row is the claim's own. Refused: what the row says
   * instead.
   *
   * @throws `TRANSACTION_CANCELLED` when one of `writes` was refused
   */
  commitUnclaimed(
    message: Message,
    writes: readonly TransactAction[],
    attempt: number,
  ): Promise<Refusal | undefined>;
  /** Whether the event is older than the inbox retention: without a row it must not run, because the row may have expired. */
  tooOld(message: Message): boolean;
  /** What the row says of this message, read strongly consistently; `undefined` when a claim would be granted. */
  look(message: Message): Promise<Refusal | undefined>;
}

/** Makes the inbox of one consumer. */
export function createInbox(deps: InboxDeps): Inbox {
  const { table, clock, random, consumer } = deps;
  const keyOf = (message: Message) => inboxKey(consumer, message.eventId);
  const pointerKeyOf = (message: Message) => rejectedKey(consumer, message.eventId);
  const retry = { table, clock, random };

  function tooOld(message: Message): boolean {
    if (!isEventId(message.eventId)) return false;
    return clock.now() - eventIdTime(message.eventId) > deps.inboxRetentionDays * DAY_MS;
  }

  /**
   * The claim's condition, clause by clause: nobody has it (unless it is too old to know), or it failed, or its
   * owner's lease has passed; and it was not rejected under this very SQS message id.
   */
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

  /** A REJECTED row that a redrive may open again: this very state, under another message id. */
  function readmissible(message: Message, row: InboxRow) {
    return {
      condition: '#status = :REJECTED AND fence = :heldFence AND NOT contains(rejectedIds, :messageId)',
      values: { ':REJECTED': 'REJECTED', ':heldFence': row.fence, ':messageId': message.messageId },
    };
  }

  /** What the row means for this message, when it is not ours. The order of the tests matters: PROCESSED answers first. */
  function judge(message: Message, row: InboxRow | undefined): Judgement {
    if (row === undefined) return tooOld(message) ? { status: 'too-old' } : { status: 'open' };
    if (row.status === 'PROCESSED' || row.status === 'DISCARDED')
      return { status: 'processed', result: row.result };
    const reason = row.reason ?? 'UNKNOWN';
    if (row.rejectedIds?.has(message.messageId)) return { status: 'rejected', reason };
    if (row.status === 'REJECTED') {
      return reason === TOO_OLD && !row.runAnyway ? { status: 'rejected', reason } : { status: 'readmit' };
    }
    if (row.status === 'FAILED') return { status: 'open' };
    const until = row.leaseUntil ?? 0;
    if (until < clock.now()) return { status: 'expired', attempts: row.attempts };
    return { status: 'leased', until, endsBy: row.endsBy ?? until };
  }

  /** As {@link judge}, for a transition that found the row neither ours nor claimable by now: somebody was quicker. */
  function refusalOf(message: Message, item: Item | undefined): Refusal {
    const judgement = judge(message, item === undefined ? undefined : asRow<InboxRow>(item));
    if (isRefusal(judgement)) return judgement;
    const now = clock.now();
    return { status: 'leased', until: now, endsBy: now };
  }

  const claim: Inbox['claim'] = async (message, { takeOver, endsBy }) => {
    const fence = mintToken(random);
    const now = clock.now();
    const leaseUntil = Math.min(now + deps.leaseMs, endsBy);
    const granted = (row: Item): Verdict => ({
      status: 'claimed',
      claim: {
        message,
        attempt: Number(row.attempts),
        fence,
        leaseUntil,
        endsBy,
        lastError: row.lastError as string | undefined,
      },
    });
    const values = {
      ':PROCESSING': 'PROCESSING',
      ':schema': SCHEMA,
      ':fence': fence,
      ':leaseUntil': leaseUntil,
      ':endsBy': endsBy,
      ':claimedAt': now,
      ':type': message.type ?? 'unknown',
      ':one': 1,
    };
    const set =
      'SET #status = :PROCESSING, #schema = :schema, fence = :fence, leaseUntil = :leaseUntil, endsBy = :endsBy, ' +
      'claimedAt = :claimedAt, #type = :type';
    const names = { '#status': 'status', '#schema': 'schema', '#type': 'type' };
    const { condition, values: conditionValues } = claimable(message, takeOver, now);
    try {
      const row = await table.write({
        Update: {
          Key: { ...keyOf(message) },
          UpdateExpression: `${set}, attempts = if_not_exists(attempts, :zero) + :one`,
          ConditionExpression: condition,
          ExpressionAttributeNames: names,
          ExpressionAttributeValues: { ...values, ':zero': 0, ...conditionValues },
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        },
      });
      return granted(row ?? {});
    } catch (error) {
      if (!isConditionFailed(error)) throw error;
      const row = error.item === undefined ? undefined : asRow<InboxRow>(error.item);
      if (row !== undefined && isOurs(row, fence)) return granted(error.item ?? {}); // the answer to our claim was lost
      if (row === undefined || judge(message, row).status !== 'readmit')
        return refusalOf(message, error.item);
      const refused = await readmit(message, row, {
        UpdateExpression: `${set}, attempts = :one REMOVE reason, rejectedAt`,
        ExpressionAttributeNames: names,
        ExpressionAttributeValues: values,
      });
      if (refused === undefined) return granted({ ...row, attempts: 1 });
      if (refused.item !== undefined && isOurs(asRow<InboxRow>(refused.item), fence))
        return granted(refused.item);
      return refusalOf(message, refused.item);
    }
  };

  /** REJECTED -> whatever `update` says, and the pointer out, in one transaction. Returns the reason of a refusal. */
  async function readmit(
    message: Message,
    row: InboxRow,
    update: Pick<Update, 'UpdateExpression' | 'ExpressionAttributeNames' | 'ExpressionAttributeValues'>,
    writes: readonly TransactAction[] = [],
  ): Promise<CancellationReason | undefined> {
    const { condition, values } = readmissible(message, row);
    return inboxTransaction(message, { ...update, ConditionExpression: condition }, values, [
      { Delete: { Key: { ...pointerKeyOf(message) } } },
      ...writes,
    ]);
  }

  /**
   * A transaction whose first action is the inbox row's. The inbox row is judged first: its refusal is returned;
   * a refusal of another action is thrown, with the reasons of `writes` only.
   */
  async function inboxTransaction(
    message: Message,
    update: Pick<Update, 'UpdateExpression' | 'ExpressionAttributeNames' | 'ConditionExpression'> & {
      readonly ExpressionAttributeValues?: Item | undefined;
    },
    values: Item,
    others: readonly TransactAction[],
  ): Promise<CancellationReason | undefined> {
    const own: Update = {
      ...update,
      Key: { ...keyOf(message) },
      ExpressionAttributeValues: { ...update.ExpressionAttributeValues, ...values },
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    };
    try {
      await transactWithRetry(retry, [{ Update: own }, ...others]);
      return undefined;
    } catch (error) {
      if (isTransactionCancelled(error) && error.reasons[0]?.code === 'ConditionalCheckFailed')
        return error.reasons[0];
      throw error;
    }
  }

  /** One transition under the claim's fence. Returns `undefined` when it happened, now or by an answer that was lost. */
  async function underFence(
    current: Claim,
    update: string,
    values: Item,
    became: (row: InboxRow) => boolean,
    names: Record<string, string> = {},
  ): Promise<Refusal | undefined> {
    try {
      await table.write({
        Update: {
          Key: { ...keyOf(current.message) },
          UpdateExpression: update,
          ConditionExpression: MINE,
          ExpressionAttributeNames: { '#status': 'status', ...names },
          ExpressionAttributeValues: { ...values, ...mine(current) },
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        },
      });
      return undefined;
    } catch (error) {
      if (!isConditionFailed(error)) throw error;
      const row = error.item === undefined ? undefined : asRow<InboxRow>(error.item);
      if (row !== undefined && row.fence === current.fence && became(row)) return undefined;
      return refusalOf(current.message, error.item);
    }
  }

  const renew: Inbox['renew'] = async (current) => {
    const leaseUntil = Math.min(clock.now() + deps.leaseMs, current.endsBy);
    const refusal = await underFence(
      current,
      'SET leaseUntil = :leaseUntil',
      { ':leaseUntil': leaseUntil },
      (row) => row.status === 'PROCESSING',
    );
    if (refusal !== undefined) throw fenceLost(current, refusal);
    return { ...current, leaseUntil };
  };

  function rejection(message: Message, error: unknown, now: number) {
    const reason = errorCode(error);
    const cause = { lastError: errorMessage(error), fingerprint: `${consumer} ${fingerprint(error)}` };
    const pointer: RejectedPointer = {
      ...pointerKeyOf(message),
      schema: SCHEMA,
      rejectedAt: now,
      reason,
      ...cause,
    };
    return {
      update: {
        UpdateExpression:
          'SET #status = :REJECTED, #schema = :schema, #type = :type, reason = :reason, rejectedAt = :rejectedAt, ' +
          'lastError = :lastError, fingerprint = :fingerprint ADD rejectedIds :rejectedId REMOVE leaseUntil, endsBy',
        ExpressionAttributeNames: { '#status': 'status', '#schema': 'schema', '#type': 'type' },
        ExpressionAttributeValues: {
          ':REJECTED': 'REJECTED',
          ':schema': SCHEMA,
          ':type': message.type ?? 'unknown',
          ':reason': reason,
          ':rejectedAt': now,
          ':lastError': cause.lastError,
          ':fingerprint': cause.fingerprint,
          ':rejectedId': new Set([message.messageId]),
        },
      },
      pointer: { Put: { Item: { ...pointer } } } satisfies TransactAction,
    };
  }

  const reject: Inbox['reject'] = async (current, error) => {
    const { update, pointer } = rejection(current.message, error, clock.now());
    const refused = await inboxTransaction(
      current.message,
      { ...update, ConditionExpression: MINE },
      mine(current),
      [pointer],
    );
    if (refused === undefined) return undefined;
    const refusal = refusalOf(current.message, refused.item);
    return refusal.status === 'rejected' ? undefined : refusal;
  };

  const rejectUnclaimed: Inbox['rejectUnclaimed'] = async (message, error) => {
    const now = clock.now();
    const { update, pointer } = rejection(message, error, now);
    const rejected = { status: 'rejected', reason: errorCode(error) } as const;
    // The claim's own condition, and the absent row also where it is too old to run: rejecting runs nothing.
    const { condition, values } = claimable(message, true, now);
    const fenced = withFence(update);
    const refused = await inboxTransaction(
      message,
      { ...fenced, ConditionExpression: `attribute_not_exists(PK) OR (${condition})` },
      values,
      [pointer],
    );
    if (refused === undefined) return rejected;
    const row = refused.item === undefined ? undefined : asRow<InboxRow>(refused.item);
    if (row === undefined || judge(message, row).status !== 'readmit')
      return refusalOf(message, refused.item);
    // Rejected before under another message id: it stays REJECTED and keeps its pointer.
    const again = readmissible(message, row);
    const refusedAgain = await inboxTransaction(
      message,
      { ...fenced, ConditionExpression: again.condition },
      again.values,
      [pointer],
    );
    return refusedAgain === undefined ? rejected : refusalOf(message, refusedAgain.item);
  };

  function withFence<U extends { UpdateExpression: string; ExpressionAttributeValues: Item }>(update: U): U {
    return {
      ...update,
      UpdateExpression: update.UpdateExpression.replace(
        'SET ',
        'SET fence = :fence, attempts = if_not_exists(attempts, :zero), ',
      ),
      ExpressionAttributeValues: {
        ...update.ExpressionAttributeValues,
        ':fence': mintToken(random),
        ':zero': 0,
      },
    };
  }

  function processed(now: number) {
    return {
      set: '#status = :PROCESSED, processedAt = :processedAt, #expiresAt = :expiresAt',
      remove: 'leaseUntil, endsBy, reason, rejectedAt',
      names: { '#status': 'status', '#expiresAt': 'expiresAt' },
      values: {
        ':PROCESSED': 'PROCESSED',
        ':processedAt': now,
        ':expiresAt': expiresAt(now, deps.inboxRetentionDays),
      },
    };
  }

  const commit: Inbox['commit'] = async (current, writes) => {
    const done = processed(clock.now());
    const update = {
      UpdateExpression: `SET ${done.set} REMOVE ${done.remove}`,
      ConditionExpression: MINE,
      ExpressionAttributeNames: done.names,
      ExpressionAttributeValues: done.values,
    };
    let item: Item | undefined;
    try {
      const refused = await inboxTransaction(current.message, update, mine(current), writes);
      if (refused === undefined) return;
      item = refused.item;
    } catch (error) {
      if (isTransactionCancelled(error)) throw withoutInboxRow(error, writes.length);
      // No answer: only the row can tell whether it happened.
      item = await table.get(keyOf(current.message), { consistent: true });
      if (item !== undefined && isOurs(asRow<InboxRow>(item), current.fence)) throw error;
    }
    const row = item === undefined ? undefined : asRow<InboxRow>(item);
    if (row?.status === 'PROCESSED' && row.fence === current.fence) return; // it was us
    throw fenceLost(current, refusalOf(current.message, item));
  };

  const commitUnclaimed: Inbox['commitUnclaimed'] = async (message, writes, attempt) => {
    const now = clock.now();
    const done = processed(now);
    const update = {
      UpdateExpression: `SET ${done.set}, #schema = :schema, #type = :type, fence = :fence, attempts = :attempts REMOVE ${done.remove}`,
      ExpressionAttributeNames: { ...done.names, '#schema': 'schema', '#type': 'type' },
      ExpressionAttributeValues: {
        ...done.values,
        ':schema': SCHEMA,
        ':type': message.type ?? 'unknown',
        ':fence': mintToken(random),
        ':attempts': attempt,
      },
    };
    const { condition, values } = claimable(message, true, now);
    try {
      const refused = await inboxTransaction(
        message,
        { ...update, ConditionExpression: condition },
        values,
        writes,
      );
      if (refused === undefined) return undefined;
      const row = refused.item === undefined ? undefined : asRow<InboxRow>(refused.item);
      if (row === undefined || judge(message, row).status !== 'readmit')
        return refusalOf(message, refused.item);
      const refusedAgain = await readmit(message, row, update, writes);
      return refusedAgain === undefined ? undefined : refusalOf(message, refusedAgain.item);
    } catch (error) {
      if (isTransactionCancelled(error)) throw withoutInboxRow(error, writes.length);
      throw error;
    }
  };

  return {
    tooOld,
    claim,
    renew,
    reject,
    rejectUnclaimed,
    commit,
    commitUnclaimed,
    release: (current, error) =>
      underFence(
        current,
        'SET #status = :FAILED, lastError = :lastError, fingerprint = :fingerprint REMOVE leaseUntil, endsBy',
        {
          ':FAILED': 'FAILED',
          ':lastError': errorMessage(error),
          ':fingerprint': `${consumer} ${fingerprint(error)}`,
        },
        (row) => row.status === 'FAILED',
      ),
    giveBack: (current) =>
      underFence(
        current,
        'SET #status = :FAILED, attempts = attempts - :one REMOVE leaseUntil, endsBy',
        { ':FAILED': 'FAILED', ':one': 1 },
        (row) => row.status === 'FAILED',
      ),
    complete: (current, result) => {
      const done = processed(clock.now());
      const json = resultJson(result);
      return underFence(
        current,
        `SET ${done.set}${json === undefined ? '' : ', #result = :result'} REMOVE ${done.remove}`,
        { ...done.values, ...(json === undefined ? {} : { ':result': json }) },
        (row) => row.status === 'PROCESSED',
        { ...done.names, ...(json === undefined ? {} : { '#result': 'result' }) },
      );
    },
    look: async (message) => {
      const item = await table.get(keyOf(message), { consistent: true });
      const judgement = judge(message, item === undefined ? undefined : asRow<InboxRow>(item));
      return isRefusal(judgement) && judgement.status !== 'expired' ? judgement : undefined;
    },
  };
}

/** The condition of every transition but the claim. */
const MINE = '#status = :heldStatus AND fence = :heldFence';

function mine(claim: Claim): Item {
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

function isOurs(row: InboxRow, fence: string): boolean {
  return row.status === 'PROCESSING' && row.fence === fence;
}

function fenceLost(claim: Claim, refusal: Refusal): FenceLost {
  return new FenceLost(
    `Message ${claim.message.eventId} is not this worker's any more (it is ${refusal.status}); whatever it writes under its old claim is refused`,
  );
}

/** The same cancellation as the handler's own transaction would have met it: with the reasons of its writes only. */
function withoutInboxRow(error: TransactionCancelled, writes: number): TransactionCancelled {
  return new TransactionCancelled(error.reasons.slice(error.reasons.length - writes), { cause: error });
}

/** A handler's result as JSON; `undefined` when there is none, or it is no JSON, or too long to keep. */
function resultJson(result: unknown): string | undefined {
  try {
    const json = JSON.stringify(result);
    return json !== undefined && json.length <= RESULT_MAX_CHARS ? json : undefined;
  } catch {
    return undefined;
  }
}
