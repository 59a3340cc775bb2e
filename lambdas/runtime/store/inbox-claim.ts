import { type CancellationReason, fingerprint, isConditionFailed, MailroomError } from '../errors.ts';
import { mintToken } from './event-id.ts';
import type { Inbox } from './inbox.ts';
import {
  ALONE_FROM,
  type Condition,
  type Conditions,
  isOurs,
  type Message,
  mustRunAlone,
  rowOf,
  unfinishedOf,
  type Verdict,
} from './inbox-conditions.ts';
import type { InboxDeps, InboxRows, RowUpdate } from './inbox-row.ts';
import { asRow, type InboxRow, SCHEMA } from './rows.ts';
import type { Item } from './table.ts';

/** Makes the claim: no row, FAILED, PROCESSING under a lease that has passed, or REJECTED and redriven -> PROCESSING. */
export function createClaiming(
  deps: InboxDeps,
  rows: InboxRows,
  { claimable, abandoned, readmissible, judge, refusalOf }: Conditions,
): Pick<Inbox, 'claim' | 'isSuspect'> {
  const { table, clock, random, consumer } = deps;

  const claim: Inbox['claim'] = async (message, { endsBy, firstReceive, alone }) => {
    const fence = mintToken(random);
    const now = clock.now();
    const leaseUntil = Math.min(now + deps.leaseMs, endsBy);
    const granted = (item: Item, takenOver = false): Verdict => ({
      status: 'claimed',
      claim: {
        message,
        attempt: attemptsOf(item),
        fence,
        leaseUntil,
        endsBy,
        takenOver,
        unfinished: unfinishedOf(asRow(item)),
        lastError: item.lastError as string | undefined,
      },
    });
    const held: RowUpdate = {
      UpdateExpression:
        'SET #status = :PROCESSING, #schema = :schema, fence = :fence, leaseUntil = :leaseUntil, endsBy = :endsBy, ' +
        'claimedAt = :claimedAt, #type = :type',
      ExpressionAttributeNames: { '#status': 'status', '#schema': 'schema', '#type': 'type' },
      ExpressionAttributeValues: {
        ':PROCESSING': 'PROCESSING',
        ':schema': SCHEMA,
        ':fence': fence,
        ':leaseUntil': leaseUntil,
        ':endsBy': endsBy,
        ':claimedAt': now,
        ':type': message.type ?? 'unknown',
      },
    };

    const refusedBy = await write(
      message,
      firstReceive
        ? and(held, ', attempts = :one REMOVE retryAt, unfinished', { ':one': 1 })
        : and(held, ', attempts = if_not_exists(attempts, :zero) + :one REMOVE retryAt', {
            ':one': 1,
            ':zero': 0,
          }),
      claimable(message, alone || firstReceive),
    );
    if (refusedBy.written !== undefined) return granted(refusedBy.written);
    const row = rowOf(refusedBy.item);
    if (isOurs(row, fence)) return granted(refusedBy.item ?? {}); // the answer to our claim was lost
    const meaning = row === undefined ? undefined : judge(message, row).status;
    if (row !== undefined && meaning === 'abandoned') {
      if (!firstReceive && !alone && mustRunAlone(row)) return { status: 'suspect' };
      const taken = await write(message, takeover(held, row, firstReceive), abandoned(message, row));
      if (taken.written !== undefined) return granted(taken.written, true);
      if (isOurs(rowOf(taken.item), fence)) return granted(taken.item ?? {}, true);
      return refusalOf(message, taken.item);
    }
    if (row !== undefined && meaning === 'readmit') {
      const refused = await readmit(message, row, and(held, READMITTED, { ':one': 1 }));
      if (refused === undefined) return granted({ attempts: 1, lastError: row.lastError });
      if (isOurs(rowOf(refused.item), fence)) return granted(refused.item ?? {});
      return refusalOf(message, refused.item);
    }
    return refusalOf(message, refusedBy.item);
  };

  /**
   * Of a claim that ended without a result, only one that ran alone counts as an attempt: its message had the process and all
   * the time of the function to itself. The attempt of any other is made again under the same number.
   */
  function takeover(held: RowUpdate, row: InboxRow, firstReceive: boolean): RowUpdate {
    const unfinished = unfinishedOf(row);
    const counted = unfinished >= ALONE_FROM ? 1 : 0;
    const died = new MailroomError('FUNCTION_DIED', FUNCTION_DIED);
    return and(
      held,
      `, attempts = :attempts, unfinished = :unfinished${row.outOfTime ? '' : ', lastError = :lastError, fingerprint = :fingerprint'}` +
        ' REMOVE outOfTime, retryAt',
      {
        ':attempts': firstReceive ? 1 : Math.max(1, attemptsOf({ ...row })) + counted,
        ':unfinished': firstReceive ? 1 : unfinished + 1,
        ...(row.outOfTime
          ? {}
          : { ':lastError': died.message, ':fingerprint': `${consumer} ${fingerprint(died)}` }),
      },
    );
  }

  async function write(message: Message, update: RowUpdate, { condition, values }: Condition) {
    try {
      const written = await table.write({
        Update: {
          ...update,
          Key: { ...rows.keyOf(message) },
          ConditionExpression: condition,
          ExpressionAttributeValues: { ...update.ExpressionAttributeValues, ...values },
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        },
      });
      return { written: written ?? {} };
    } catch (error) {
      if (isConditionFailed(error)) return { item: error.item };
      throw error;
    }
  }

  /** REJECTED -> PROCESSING, and the pointer out, in one transaction. Returns the reason of a refusal. */
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

  const isSuspect: Inbox['isSuspect'] = async (message) => {
    const row = rowOf(await table.get(rows.keyOf(message), { consistent: true }));
    if (row === undefined || !mustRunAlone(row)) return false;
    const { status } = judge(message, row);
    return status === 'open' || status === 'abandoned';
  };

  return { claim, isSuspect };
}

/** Why a claim ended without a result, where its worker could not say it. */
const FUNCTION_DIED =
  'The function ended before its handler did: it crashed, ran out of memory, or was stopped at its timeout';

/** What a redriven message leaves behind. */
const READMITTED = ', attempts = :one REMOVE reason, rejectedAt, unfinished, outOfTime';

/** The same update, and more. */
function and(update: RowUpdate, more: string, values: Item): RowUpdate {
  return {
    ...update,
    UpdateExpression: `${update.UpdateExpression}${more}`,
    ExpressionAttributeValues: { ...update.ExpressionAttributeValues, ...values },
  };
}

/** A row's attempts; 0 where they cannot be read. */
function attemptsOf({ attempts }: Item): number {
  return Number.isSafeInteger(attempts) ? Number(attempts) : 0;
}
