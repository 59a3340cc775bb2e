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
import { mintToken, type RandomBytes } from './event-id.ts';
import {
  type Claim,
  createConditions,
  isOurs,
  type Message,
  MINE,
  mine,
  type Refusal,
  TOO_OLD,
  type Verdict,
} from './inbox-conditions.ts';
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
import type { Item, Table, TransactAction, Update } from './table.ts';

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

/** Results longer than this are not kept on the row: it would cost more than it is worth. */
const RESULT_MAX_CHARS = 4_096;

/** The transitions of one consumer's inbox rows. */
export interface Inbox {
  /**
   * Claims a message.
   *
   * @param options.takeOver - whether a message whose owner's lease has passed may be taken over
   * @param options.endsBy - when the function is stopped, epoch milliseconds
   * @param options.firstReceive - whether this is the first run of this message that counts: its attempts begin at 1,
   * also where a dead letter that comes back was never rejected
   */
  claim(
    message: Message,
    options: { readonly takeOver: boolean; readonly endsBy: number; readonly firstReceive: boolean },
  ): Promise<Verdict>;
  /** Extends the lease, never past `endsBy`. @throws `FENCE_LOST` when the message is not ours any more */
  renew(claim: Claim): Promise<Claim>;
  /**
   * The handler failed: FAILED, with the error; anybody may claim it. Refused: what the row says instead.
   *
   * @param retryAt - when SQS shows the message again, epoch milliseconds
   */
  release(claim: Claim, error: unknown, retryAt: number): Promise<Refusal | undefined>;
  /** Lets go of the message as if this claim had not been. Refused: what the row says instead. */
  giveBack(claim: Claim, retryAt: number): Promise<Refusal | undefined>;
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
  /** Whether the event is older than the inbox retention: without a row it must not run, because the row may have expired. */
  tooOld(message: Message): boolean;
}

/** Makes the inbox of one consumer. */
export function createInbox(deps: InboxDeps): Inbox {
  const { table, clock, random, consumer } = deps;
  const keyOf = (message: Message) => inboxKey(consumer, message.eventId);
  const pointerKeyOf = (message: Message) => rejectedKey(consumer, message.eventId);
  const retry = { table, clock, random };
  const { tooOld, claimable, readmissible, judge, refusalOf } = createConditions(
    clock,
    deps.inboxRetentionDays,
  );

  const claim: Inbox['claim'] = async (message, { takeOver, endsBy, firstReceive }) => {
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
        takenOver: takeOver,
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
          UpdateExpression: `${set}, attempts = ${firstReceive ? ':one' : 'if_not_exists(attempts, :zero) + :one'} REMOVE retryAt`,
          ConditionExpression: condition,
          ExpressionAttributeNames: names,
          ExpressionAttributeValues: {
            ...values,
            ...(firstReceive ? {} : { ':zero': 0 }),
            ...conditionValues,
          },
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
  ): Promise<CancellationReason | undefined> {
    const { condition, values } = readmissible(message, row);
    return inboxTransaction(message, { ...update, ConditionExpression: condition }, values, [
      { Delete: { Key: { ...pointerKeyOf(message) } } },
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
      ...(message.sentAt === undefined ? {} : { sentAt: message.sentAt }),
    };
    return {
      update: {
        UpdateExpression:
          'SET #status = :REJECTED, #schema = :schema, #type = :type, reason = :reason, rejectedAt = :rejectedAt, ' +
          'lastError = :lastError, fingerprint = :fingerprint ADD rejectedIds :rejectedId REMOVE leaseUntil, endsBy, retryAt',
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
    const reason = errorCode(error);
    const rejected = { status: 'rejected', reason } as const;
    const { condition, values } = claimable(message, true, now);
    const fenced = withFence(update);
    const refused = await inboxTransaction(
      message,
      {
        ...fenced,
        ConditionExpression: reason === TOO_OLD ? `attribute_not_exists(PK) OR (${condition})` : condition,
      },
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
      remove: 'leaseUntil, endsBy, retryAt, reason, rejectedAt',
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
    const commitId = mintToken(random);
    const update = {
      UpdateExpression: `SET ${done.set}, commitId = :commitId REMOVE ${done.remove}`,
      ConditionExpression: MINE,
      ExpressionAttributeNames: done.names,
      ExpressionAttributeValues: { ...done.values, ':commitId': commitId },
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
    if (row?.status === 'PROCESSED' && row.fence === current.fence && row.commitId === commitId) return; // it was us
    throw fenceLost(current, refusalOf(current.message, item));
  };

  const commitUnclaimed: Inbox['commitUnclaimed'] = async (message, writes, attempt) => {
    const done = processed(clock.now());
    const update = {
      UpdateExpression: `SET ${done.set}, #schema = :schema, #type = :type, fence = :fence, attempts = :attempts`,
      ConditionExpression: 'attribute_not_exists(PK)',
      ExpressionAttributeNames: { ...done.names, '#schema': 'schema', '#type': 'type' },
      ExpressionAttributeValues: {
        ...done.values,
        ':schema': SCHEMA,
        ':type': message.type ?? 'unknown',
        ':fence': mintToken(random),
        ':attempts': attempt,
      },
    };
    try {
      const refused = await inboxTransaction(message, update, {}, writes);
      if (refused === undefined) return undefined;
      const row = refused.item === undefined ? undefined : asRow<InboxRow>(refused.item);
      const { status } = judge(message, row);
      const final = status === 'processed' || status === 'rejected' || status === 'leased';
      return final ? refusalOf(message, refused.item) : { status: 'open' };
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
    release: (current, error, retryAt) =>
      underFence(
        current,
        'SET #status = :FAILED, lastError = :lastError, fingerprint = :fingerprint, retryAt = :retryAt ' +
          'REMOVE leaseUntil, endsBy',
        {
          ':FAILED': 'FAILED',
          ':retryAt': retryAt,
          ':lastError': errorMessage(error),
          ':fingerprint': `${consumer} ${fingerprint(error)}`,
        },
        (row) => row.status === 'FAILED',
      ),
    giveBack: (current, retryAt) =>
      underFence(
        current,
        'SET #status = :FAILED, attempts = attempts - :one, retryAt = :retryAt REMOVE leaseUntil, endsBy',
        { ':FAILED': 'FAILED', ':one': 1, ':retryAt': retryAt },
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
  };
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
