import type { Clock } from '../clock.ts';
import type { ConsumerConfig } from '../config.ts';
import { isAlreadyProcessed, isTransactionCancelled, MailroomError } from '../errors.ts';
import type { Envelope } from '../event.ts';
import type { RandomBytes } from '../store/event-id.ts';
import type { Inbox } from '../store/inbox.ts';
import { backoffMs } from '../store/retry.ts';
import type { TransactAction } from '../store/table.ts';
import type { Telemetry } from '../telemetry.ts';
import type { Commit, Outbox } from '../write/outbox.ts';
import { checkTransaction, eventCount } from '../write/transaction-checks.ts';
import type { Delivery } from './delivery.ts';
import type { LeasedHandler, TransactionalContext, TransactionalHandler } from './handler.ts';
import { outOfTime, RESPONSE_MARGIN_MS } from './leased-run.ts';
import { readEvent } from './message.ts';
import type { Outcome, Outcomes } from './message-outcome.ts';
import { isOutageOf } from './outage.ts';

/** What running transactional handlers without a claim needs. */
export interface UnclaimedRunDeps extends FreshReadDeps {
  readonly config: Pick<ConsumerConfig, 'tableName'>;
  readonly telemetry: Telemetry;
  readonly inbox: Inbox;
  readonly outbox: Outbox;
  readonly outcomes: Outcomes;
}

/**
 * Runs a transactional handler without a claim. It only reads and returns; its writes and the inbox row are one
 * transaction, on condition that there is no row.
 *
 * @returns `undefined` when there is one, and the message has to be claimed
 * @throws what the table throws when its message cannot be rejected
 */
export type UnclaimedRun = (
  handler: TransactionalHandler,
  envelope: Envelope,
  delivery: Delivery,
) => Promise<Outcome | undefined>;

/** How often a transactional handler is run at once while its conditions are refused. */
const CONDITION_TRIES = 4;

/** With less time than this left, it is not run at once again. */
const TRY_MIN_MS = 2_000;

/** What running a handler again on fresh reads needs. */
interface FreshReadDeps {
  readonly clock: Clock;
  readonly random: RandomBytes;
}

/** Makes the unclaimed run of one consumer. */
export function createUnclaimedRun(deps: UnclaimedRunDeps): UnclaimedRun {
  const { config, clock, random, telemetry, inbox, outbox, outcomes } = deps;

  return async (handler, envelope, delivery) => {
    const { message, receives, endsBy } = delivery;
    const commit = async (actions: readonly TransactAction[]) => {
      try {
        const refusal = await inbox.commitUnclaimed(message, actions, receives);
        if (refusal === undefined) {
          telemetry.count('EventsCommitted', eventCount(actions));
          return outcomes.processed(delivery);
        }
        return refusal.status === 'open' ? undefined : await outcomes.refused(delivery, refusal);
      } catch (error) {
        if (isOutageOf(actions, config.tableName, error)) return outcomes.outage(delivery, error);
        throw error;
      }
    };
    const remainingMs = () => Math.max(0, endsBy - clock.now());
    try {
      const event = await readEvent(handler.definition, envelope);
      return await onFreshReads({ clock, random, remainingMs }, async () =>
        commit(await actionsOf(handler, event, { attempt: receives, remainingMs })),
      );
    } catch (error) {
      if (isAlreadyProcessed(error)) return commit([]);
      return outcomes.failedUnclaimed(delivery, error);
    }
  };

  async function actionsOf(
    handler: TransactionalHandler,
    event: Envelope,
    ctx: TransactionalContext,
  ): Promise<TransactAction[]> {
    const { writes = [], events = [] } = await inTime(ctx.remainingMs(), commitOf(handler, event, ctx));
    const actions = [...writes, ...(await outbox.entries(events, event))];
    // The inbox row, and the pointer of a rejected message that is let in again.
    checkTransaction(actions, clock.now(), 2);
    return actions;
  }

  /** Gives up waiting when the function's time is nearly up: the batch must be answered. */
  async function inTime<T>(remainingMs: number, work: Promise<T>): Promise<T> {
    const over = new AbortController();
    const timeIsUp = clock.sleep(remainingMs - RESPONSE_MARGIN_MS, over.signal).then((): never => {
      throw outOfTime();
    });
    timeIsUp.catch(() => {}); // also when the work has won
    try {
      return await Promise.race([work, timeIsUp]);
    } finally {
      over.abort();
    }
  }
}

/**
 * The handler as one that works under a claim. So it is run when its message comes again: a message that kills its
 * process leaves no trace without a claim, would never count an attempt, and would take its batch along.
 */
export function asLeased(handler: TransactionalHandler, deps: FreshReadDeps): LeasedHandler {
  return {
    kind: 'leased',
    definition: handler.definition,
    handle: async (event: Envelope, ctx) => {
      await onFreshReads({ ...deps, remainingMs: ctx.remainingMs }, async () =>
        ctx.commit(await commitOf(handler, event, ctx)),
      );
    },
  };
}

/**
 * Runs a handler and commits what it returns; again, on fresh reads, when only conditions (or conflicts) refused
 * the transaction.
 *
 * @throws what the last try threw
 */
async function onFreshReads<T>(
  deps: FreshReadDeps & { readonly remainingMs: () => number },
  work: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const again = isConditionRefused(error) && attempt < CONDITION_TRIES && deps.remainingMs() > TRY_MIN_MS;
      if (!again) throw error;
      await deps.clock.sleep(backoffMs(attempt, 20, 500, deps.random));
    }
  }
}

/** What the handler wants to be committed. @throws `NO_COMMIT` when it returns something else */
async function commitOf(
  handler: TransactionalHandler,
  event: Envelope,
  ctx: TransactionalContext,
): Promise<Commit> {
  const commit: unknown = await handler.handle(event as never, ctx);
  const isList = Array.isArray(commit);
  if (typeof commit === 'object' && commit !== null && !isList) return commit;
  throw new MailroomError(
    'NO_COMMIT',
    `The handler of ${event.type} returned ${isList ? 'a list' : typeof commit}; it must return { writes, events }, or {} to write nothing`,
  );
}

function isConditionRefused(error: unknown): boolean {
  if (!isTransactionCancelled(error)) return false;
  const codes = error.reasons.map((reason) => reason.code);
  return (
    codes.includes('ConditionalCheckFailed') &&
    codes.every(
      (code) => code === 'None' || code === 'ConditionalCheckFailed' || code === 'TransactionConflict',
    )
  );
}
