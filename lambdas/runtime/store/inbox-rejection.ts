import { errorCode } from '../errors.ts';
import { storedCause } from '../redaction.ts';
import { mintToken } from './event-id.ts';
import type { Inbox } from './inbox.ts';
import { type Conditions, type Message, MINE, mine, rowOf, TOO_OLD } from './inbox-conditions.ts';
import type { InboxDeps, InboxRows } from './inbox-row.ts';
import { type RejectedPointer, SCHEMA } from './rows.ts';
import type { Item, TransactAction } from './table.ts';

/** Makes the rejection of a message: whatever it is -> REJECTED, and the pointer that lists it in, in one transaction. */
export function createRejection(
  { clock, random, consumer, redact }: InboxDeps,
  rows: InboxRows,
  { rejectable, readmissible, judge, refusalOf }: Conditions,
): Pick<Inbox, 'reject' | 'rejectUnclaimed'> {
  function rejection(message: Message, error: unknown, now: number) {
    const reason = errorCode(error);
    const { lastError, fingerprint } = storedCause(error, redact);
    const cause = { lastError, fingerprint: `${consumer} ${fingerprint}` };
    const pointer: RejectedPointer = {
      ...rows.pointerKeyOf(message),
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
          'lastError = :lastError, fingerprint = :fingerprint ADD rejectedIds :rejectedId REMOVE leaseUntil, endsBy, retryAt, unfinished, outOfTime',
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
    const refused = await rows.transact(
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
    const { condition, values } = rejectable(message);
    const fenced = withFence(update);
    const refused = await rows.transact(
      message,
      {
        ...fenced,
        ConditionExpression: reason === TOO_OLD ? `attribute_not_exists(PK) OR (${condition})` : condition,
      },
      values,
      [pointer],
    );
    if (refused === undefined) return rejected;
    const row = rowOf(refused.item);
    if (row === undefined || judge(message, row).status !== 'readmit')
      return refusalOf(message, refused.item);
    // Rejected before under another message id: it stays REJECTED and keeps its pointer.
    const again = readmissible(message, row);
    const refusedAgain = await rows.transact(
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

  return { reject, rejectUnclaimed };
}
