import { type CancellationReason, isConditionFailed } from '../errors.ts';
import { mintToken } from '../event-id.ts';
import { type InboxRow, SCHEMA } from '../rows.ts';
import type { Item } from '../table.ts';
import type { Inbox } from './inbox.ts';
import { type Conditions, isOurs, type Message, rowOf, type Verdict } from './inbox-conditions.ts';
import type { InboxDeps, InboxRows, RowUpdate } from './inbox-row.ts';

/** Makes the claim: no row, FAILED, PROCESSING under a lease that has passed, or REJECTED and redriven -> PROCESSING. */
export function createClaiming(
  deps: InboxDeps,
  rows: InboxRows,
  { claimable, readmissible, judge, refusalOf }: Conditions,
): Pick<Inbox, 'claim'> {
  const { table, clock, random } = deps;

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
          Key: { ...rows.keyOf(message) },
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
      const row = rowOf(error.item);
      if (isOurs(row, fence)) return granted(error.item ?? {}); // the answer to our claim was lost
      if (row === undefined || judge(message, row).status !== 'readmit')
        return refusalOf(message, error.item);
      const refused = await readmit(message, row, {
        UpdateExpression: `${set}, attempts = :one REMOVE reason, rejectedAt`,
        ExpressionAttributeNames: names,
        ExpressionAttributeValues: values,
      });
      if (refused === undefined) return granted({ ...row, attempts: 1 });
      if (isOurs(rowOf(refused.item), fence)) return granted(refused.item ?? {});
      return refusalOf(message, refused.item);
    }
  };

  /** REJECTED -> whatever `update` says, and the pointer out, in one transaction. Returns the reason of a refusal. */
  async function readmit(
    message: Message,
    row: InboxRow,
    update: RowUpdate,
  ): Promise<CancellationReason | undefined> {
    const { condition, values } = readmissible(message, row);
    return rows.transact(message, { ...update, ConditionExpression: condition }, values, [
      { Delete: { Key: { ...rows.pointerKeyOf(message) } } },
    ]);
  }

  return { claim };
}
