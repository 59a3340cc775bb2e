import { isMailroomError, MailroomError } from '../../base/errors.ts';
import type { CommitEnd, CommitFailure, HandlerWork, UnclaimedEnd } from '../../consume/inbox-port.ts';
import type { HandledEvent } from '../../events/external-event.ts';
import type { Claim, Message } from '../../inbox/inbox.ts';
import { admissionOf, fenceLost, isOurs, refusalBy } from '../../inbox/inbox-admission.ts';
import { ours } from '../../inbox/inbox-conditions.ts';
import { processed, processedUnclaimed } from '../../inbox/inbox-transitions.ts';
import type { RowTransition } from '../../inbox/row-transition.ts';
import { mintToken } from '../event-id.ts';
import { applied, type LastRaise } from '../last-sequence.ts';
import type { Sql } from '../sql/database.ts';
import { leasedNow } from './inbox-claim.ts';
import { outcomeOf, processedBy } from './inbox-outcome.ts';
import {
  CONFLICT_TRIES,
  isConflict,
  isLocked,
  isUnreachable,
  type MysqlInboxContext,
  readRow,
  run,
} from './inbox-row.ts';
import { holdOrOvertaken, insertOf, lockOf, updateOf } from './inbox-writes.ts';
import { writeLast } from './last-sequence.ts';
import { isServerGone } from './mysql-error.ts';
import type { StatementPart } from './statement.ts';
import { inOneTransaction } from './whole-transaction.ts';

/** The step at which a transaction failed. */
type TransactionStep = 'condition' | 'refused' | 'work' | 'events' | 'sent';

interface HandlerTransaction {
  progress: TransactionStep;
  events: number;
}

/** The statements around a handler's work. */
interface Recording {
  /** Holds the message until the transaction ends. @returns false if it is not open for this commit */
  readonly hold: (sql: Sql) => Promise<boolean>;
  /** Records that it is processed, after the work. */
  readonly record: StatementPart;
  /** The last applied sequence of its aggregate: held before the work, and raised after it. */
  readonly raise: LastRaise | undefined;
}

/** As `commit` of the inbox in DynamoDB: the handler's work runs inside the transaction. */
export async function commit<Tx>(
  ctx: MysqlInboxContext<Tx>,
  claim: Claim,
  work: HandlerWork,
  event: HandledEvent,
  sending: () => void,
): Promise<CommitEnd> {
  const { rules, database } = ctx;
  const { message, fence } = claim;
  const made = newRun();
  // The first statement locks the row, so that a takeover waits for the end of the transaction.
  const lock = lockOf(rules, message.eventId, ours(claim));
  const recording: Recording = {
    hold: async (sql) => (await run(sql, lock, {})).length > 0,
    record: updateOf(rules, message.eventId, ours(claim), processed(rules)),
    raise: applied(message),
  };
  try {
    await transact(ctx, made, recording, work, event, sending);
    return { status: 'committed', events: made.events };
  } catch (error) {
    if (made.progress !== 'refused') return failedEnd(ctx, message, made, fence, error);
    return readRow(ctx, database, message.eventId).then((row): CommitEnd => {
      const refusal = refusalBy(rules, message, row);
      return { status: 'failed', error: fenceLost(claim, refusal), wroteNothing: true, isOutage: false };
    }, unread);
  }
}

/**
 * A row that stays invisible, unless the handler commits before its events are written: then the message is not PROCESSED, and its next receive
 * takes it over.
 */
function abandonedAtOnce({ set: { processedAt: _processedAt, ...set } }: RowTransition): RowTransition {
  return { set: { ...set, status: 'PROCESSING', leaseUntil: 0, endsBy: 0 }, clear: [] };
}

/** As `commitUnclaimed` of the inbox in DynamoDB: the handler's work runs inside the transaction. */
export async function commitUnclaimed<Tx>(
  ctx: MysqlInboxContext<Tx>,
  message: Message,
  attempt: number,
  work: HandlerWork,
  event: HandledEvent,
): Promise<UnclaimedEnd> {
  const { rules, database } = ctx;
  const { eventId } = message;
  const made = newRun();
  const fence = mintToken(rules.random);
  const done = processedUnclaimed(rules, message, attempt, fence);
  const insert = insertOf(rules, eventId, abandonedAtOnce(done));
  const isHeld = async (sql: Sql) => isOurs(await readRow(ctx, sql, eventId), fence);
  const recording: Recording = {
    hold: (sql) => run(sql, insert, {}).then(() => isHeld(sql)),
    record: updateOf(
      rules,
      eventId,
      { status: ['PROCESSING'], fence },
      { ...done, clear: ['leaseUntil', 'endsBy'] },
    ),
    raise: applied(message),
  };
  try {
    await transact(ctx, made, recording, work, event, () => {});
    return { status: 'committed', events: made.events };
  } catch (error) {
    if (made.progress === 'condition' && isLocked(error)) return leasedNow(ctx);
    if (made.progress !== 'refused') return failedEnd(ctx, message, made, fence, error);
    return readRow(ctx, database, eventId).then((row): UnclaimedEnd => {
      const { status } = admissionOf(rules, message, row);
      const isFinal = status === 'processed' || status === 'rejected' || status === 'leased';
      return isFinal ? refusalBy(rules, message, row) : { status: 'open' };
    }, unread);
  }
}

/** The end of a transaction that failed, unless its row refused it. */
async function failedEnd<Tx>(
  ctx: MysqlInboxContext<Tx>,
  message: Message,
  made: HandlerTransaction,
  fence: string,
  error: unknown,
): Promise<CommitEnd> {
  const outcome =
    made.progress === 'sent' ? await outcomeOf(ctx, message.eventId, processedBy(fence)) : 'aborted';
  if (outcome === 'committed') return { status: 'committed', events: made.events };
  const isOutage = isOutageAt(made.progress, error);
  // What the handler committed itself stays, so it may not commit again.
  const wroteNothing = outcome === 'aborted' && !isMailroomError(error, 'TRANSACTION_ENDED');
  return { status: 'failed', error, wroteNothing, isOutage };
}

/** The row refused the transaction, and could then not be read. */
function unread(error: unknown): CommitFailure {
  return { status: 'failed', error, wroteNothing: true, isOutage: isUnreachable(error) };
}

function newRun(): HandlerTransaction {
  return { progress: 'condition', events: 0 };
}

/** Runs the transaction, again while another one is in its way before the handler has run. */
async function transact<Tx>(
  ctx: MysqlInboxContext<Tx>,
  made: HandlerTransaction,
  recording: Recording,
  work: HandlerWork,
  event: HandledEvent,
  sending: () => void,
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await transactOnce(ctx, made, recording, work, event, sending);
    } catch (error) {
      if (made.progress !== 'condition' || !isConflict(error) || tries === CONFLICT_TRIES) throw error;
    }
  }
}

async function transactOnce<Tx>(
  { database, outbox, rules }: MysqlInboxContext<Tx>,
  made: HandlerTransaction,
  { hold, record, raise }: Recording,
  work: HandlerWork,
  event: HandledEvent,
  sending: () => void,
): Promise<void> {
  await database.transaction(async (tx) => {
    const sql = database.in(tx);
    if (!(await hold(sql))) {
      made.progress = 'refused';
      throw new MailroomError('CONDITION_FAILED', 'The message is not open for this commit.');
    }
    // Before the handler's reads: until the end of the transaction, no other event of the aggregate is applied.
    if (raise !== undefined) await holdOrOvertaken(sql, rules, raise);
    const events = await inOneTransaction(sql, 'mailroom_inbox', async () => {
      made.progress = 'work';
      const { writes, events: returned = [] } = await work(tx);
      refuseWrites(writes);
      return returned;
    });
    made.progress = 'events';
    if (events.length > 0) await outbox.write(tx, events, event);
    await run(sql, record, {});
    if (raise !== undefined) await writeLast(sql, raise);
    made.events = events.length;
    sending(); // it refuses a commit beside an un-awaited call, which is rolled back then
    made.progress = 'sent';
  });
}

/** A failure of the handler's own statement counts as an attempt, unless the server is gone. */
function isOutageAt(progress: TransactionStep, error: unknown): boolean {
  return progress === 'work' ? isServerGone(error) : isUnreachable(error);
}

/** @throws `NO_COMMIT` if a function of the consumer returned writes of DynamoDB */
export function refuseWrites(writes: unknown): void {
  if (writes === undefined) return;
  throw new MailroomError(
    'NO_COMMIT',
    'A handler on MySQL returned `writes`. Write to your tables through `tx`, and return { events }.',
  );
}
