import { MailroomError } from '../../base/errors.ts';
import type { CommitEnd, CommitFailure, HandlerWork, UnclaimedEnd } from '../../consume/inbox-port.ts';
import type { HandledEvent } from '../../events/external-event.ts';
import type { Claim, Message } from '../../inbox/inbox.ts';
import { admissionOf, fenceLost, refusalBy } from '../../inbox/inbox-admission.ts';
import { NO_ROW, ours } from '../../inbox/inbox-conditions.ts';
import { processed, processedUnclaimed } from '../../inbox/inbox-transitions.ts';
import { mintToken } from '../event-id.ts';
import { applied, type LastRaise } from '../last-sequence.ts';
import { outcomeOf } from './commit-outcome.ts';
import { leasedNow, refusalNow } from './inbox-claim.ts';
import {
  isLocked,
  isServerGone,
  isUnreachable,
  type PostgresInboxContext,
  readRow,
  run,
} from './inbox-row.ts';
import { raiseOrOvertaken, transitionOf } from './inbox-writes.ts';
import type { Sql } from './sql.ts';

/** The transaction, for the question whether it committed. */
const XID = 'pg_current_xact_id()::text AS xid';

/** Each run has its own fence, also an unclaimed one. Another run of the message may even have the same transaction id. */
const PROOF = `EXISTS (SELECT FROM mailroom.inbox
  WHERE consumer = $2::text AND event_id = $3::text AND status = 'PROCESSED' AND fence = $4::text)`;

/** The step at which a transaction failed. */
type CommitProgress = 'condition' | 'refused' | 'order' | 'work' | 'events' | 'sent';

/** The end of the message: its row first, then the last applied sequence of its aggregate. */
interface CommitEnding {
  readonly condition: string;
  readonly values: readonly unknown[];
  readonly raise: LastRaise | undefined;
}

interface CommitRun {
  progress: CommitProgress;
  events: number;
  xid: string;
}

/** As `commit` of the inbox in DynamoDB: the handler's work runs inside the transaction. */
export async function commit<Tx>(
  ctx: PostgresInboxContext<Tx>,
  claim: Claim,
  work: HandlerWork,
  event: HandledEvent,
  sending: () => void,
): Promise<CommitEnd> {
  const { message, fence } = claim;
  const made = newRun();
  try {
    // The first statement of a commit: it holds the row, so that a takeover waits for the end of the transaction.
    const done = processed(ctx.rules);
    const [condition, values] = transitionOf(ctx.rules, message.eventId, ours(claim), done, XID);
    await transact(ctx, made, { condition, values, raise: applied(message) }, work, event, sending);
    return { status: 'committed', events: made.events };
  } catch (error) {
    if (made.progress !== 'refused') return failedEnd(ctx, message, made, fence, error);
    return refusalNow(ctx, message).then((refusal): CommitEnd => {
      return { status: 'failed', error: fenceLost(claim, refusal), wroteNothing: true, isOutage: false };
    }, unread);
  }
}

/** As `commitUnclaimed` of the inbox in DynamoDB: the handler's work runs inside the transaction. */
export async function commitUnclaimed<Tx>(
  ctx: PostgresInboxContext<Tx>,
  message: Message,
  attempt: number,
  work: HandlerWork,
  event: HandledEvent,
): Promise<UnclaimedEnd> {
  const made = newRun();
  const fence = mintToken(ctx.rules.random);
  try {
    const done = processedUnclaimed(ctx.rules, message, attempt, fence);
    const [condition, values] = transitionOf(ctx.rules, message.eventId, NO_ROW, done, XID);
    await transact(ctx, made, { condition, values, raise: applied(message) }, work, event, () => {});
    return { status: 'committed', events: made.events };
  } catch (error) {
    if (made.progress === 'condition' && isLocked(error)) return leasedNow(ctx);
    if (made.progress !== 'refused') return failedEnd(ctx, message, made, fence, error);
    return readRow(ctx, ctx.database, message.eventId).then((row): UnclaimedEnd => {
      const { status } = admissionOf(ctx.rules, message, row);
      const isFinal = status === 'processed' || status === 'rejected' || status === 'leased';
      return isFinal ? refusalBy(ctx.rules, message, row) : { status: 'open' };
    }, unread);
  }
}

/** The end of a transaction that failed, unless its row refused it. */
async function failedEnd<Tx>(
  ctx: PostgresInboxContext<Tx>,
  message: Message,
  made: CommitRun,
  fence: string,
  error: unknown,
): Promise<CommitEnd> {
  const outcome = await outcomeAt(ctx, message, made, fence);
  if (outcome === 'committed') return { status: 'committed', events: made.events };
  const isOutage = isOutageAt(made.progress, error);
  return { status: 'failed', error, wroteNothing: outcome === 'aborted', isOutage };
}

/** The row refused the transaction, and could then not be read. */
function unread(error: unknown): CommitFailure {
  return { status: 'failed', error, wroteNothing: true, isOutage: isUnreachable(error) };
}

function newRun(): CommitRun {
  return { progress: 'condition', events: 0, xid: '' };
}

async function transact<Tx>(
  { database, outbox, rules }: PostgresInboxContext<Tx>,
  made: CommitRun,
  { condition, values, raise }: CommitEnding,
  work: HandlerWork,
  event: HandledEvent,
  sending: () => void,
): Promise<void> {
  await database.transaction(async (tx) => {
    const sql = database.in(tx);
    const [written] = await run(sql, condition, values, { xid: 'text' });
    if (written === undefined) {
      made.progress = 'refused';
      throw new MailroomError('CONDITION_FAILED', 'The message is not open for this commit.');
    }
    made.xid = written.xid;
    made.progress = 'order';
    // Before the handler's reads: until the end of the transaction, no other event of the aggregate is applied.
    if (raise !== undefined) await raiseOrOvertaken(sql, rules, raise);
    made.progress = 'work';
    const { writes, events = [] } = await work(tx);
    refuseWrites(writes);
    made.progress = 'events';
    if (events.length > 0) await outbox.write(tx, events, event);
    else await refuseAborted(sql);
    made.events = events.length;
    sending(); // it refuses a commit beside an un-awaited call, which is rolled back then
    made.progress = 'sent';
  });
}

/**
 * PostgreSQL answers the COMMIT of a transaction in which a statement has failed with a rollback, and drivers do not report that: a
 * handler that caught the error would lose its message.
 */
export async function refuseAborted(sql: Sql): Promise<void> {
  await sql.query('SELECT 1');
}

/** The outcome of a transaction that failed. `unknown`: the database did not answer, or still decides. */
async function outcomeAt<Tx>(
  { database, rules: { consumer, clock, random } }: PostgresInboxContext<Tx>,
  { eventId }: Message,
  { progress, xid }: CommitRun,
  fence: string,
): Promise<'committed' | 'aborted' | 'unknown'> {
  if (progress !== 'sent') return 'aborted';
  const sent = { xid, proof: PROOF, values: [consumer, eventId, fence] };
  return outcomeOf({ database, clock, random }, sent);
}

/** A failure of the handler's own statement counts as an attempt, unless the server is gone. */
function isOutageAt(progress: CommitProgress, error: unknown): boolean {
  return progress === 'work' ? isServerGone(error) : isUnreachable(error);
}

/** @throws `NO_COMMIT` if a function of the consumer returned writes of DynamoDB */
export function refuseWrites(writes: unknown): void {
  if (writes === undefined) return;
  throw new MailroomError(
    'NO_COMMIT',
    'A handler on PostgreSQL returned `writes`. Write to your tables through `tx`, and return { events }.',
  );
}
