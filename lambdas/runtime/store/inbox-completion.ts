import { isTransactionCancelled, TransactionCancelled } from '../errors.ts';
import { mintToken } from './event-id.ts';
import type { Inbox } from './inbox.ts';
import { type Conditions, isOurs, MINE, mine, rowOf } from './inbox-conditions.ts';
import { fenceLost, type InboxDeps, type InboxRows } from './inbox-row.ts';
import { expiresAt, SCHEMA } from './rows.ts';
import type { Item } from './table.ts';

/** Results longer than this are not kept on the row: it would cost more than it is worth. */
const RESULT_MAX_CHARS = 4_096;

/** Makes the three ways to PROCESSED: alone, with the handler's writes, and with these but without a claim. */
export function createCompletion(
  deps: InboxDeps,
  rows: InboxRows,
  { judge, refusalOf }: Conditions,
): Pick<Inbox, 'complete' | 'commit' | 'commitUnclaimed'> {
  const { table, clock, random } = deps;

  const complete: Inbox['complete'] = (current, result) => {
    const done = processed(clock.now());
    const json = resultJson(result);
    return rows.underFence(
      current,
      `SET ${done.set}${json === undefined ? '' : ', #result = :result'} REMOVE ${done.remove}`,
      { ...done.values, ...(json === undefined ? {} : { ':result': json }) },
      (row) => row.status === 'PROCESSED',
      { ...done.names, ...(json === undefined ? {} : { '#result': 'result' }) },
    );
  };

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
      const refused = await rows.transact(current.message, update, mine(current), writes);
      if (refused === undefined) return;
      item = refused.item;
    } catch (error) {
      if (isTransactionCancelled(error)) throw withoutInboxRow(error, writes.length);
      // No answer: only the row can tell whether it happened.
      item = await table.get(rows.keyOf(current.message), { consistent: true });
      if (isOurs(rowOf(item), current.fence)) throw error;
    }
    const row = rowOf(item);
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
      const refused = await rows.transact(message, update, {}, writes);
      if (refused === undefined) return undefined;
      const { status } = judge(message, rowOf(refused.item));
      const final = status === 'processed' || status === 'rejected' || status === 'leased';
      return final ? refusalOf(message, refused.item) : { status: 'open' };
    } catch (error) {
      if (isTransactionCancelled(error)) throw withoutInboxRow(error, writes.length);
      throw error;
    }
  };

  /** What each of them changes on the row. */
  function processed(now: number) {
    return {
      set: '#status = :PROCESSED, processedAt = :processedAt, #expiresAt = :expiresAt',
      remove: 'leaseUntil, endsBy, retryAt, reason, rejectedAt, unfinished, outOfTime',
      names: { '#status': 'status', '#expiresAt': 'expiresAt' },
      values: {
        ':PROCESSED': 'PROCESSED',
        ':processedAt': now,
        ':expiresAt': expiresAt(now, deps.inboxRetentionDays),
      },
    };
  }

  return { complete, commit, commitUnclaimed };
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
