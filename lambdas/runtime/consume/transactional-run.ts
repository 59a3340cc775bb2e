import { withDeadline } from '../base/clock.ts';
import { isMailroomError, MailroomError } from '../base/errors.ts';
import type { HandledEvent } from '../events/external-event.ts';
import { commitUnclaimed } from '../inbox/inbox-completion.ts';
import type { Commit } from '../outbox/outbox.ts';
import { checkTransaction, eventCount } from '../outbox/transaction-checks.ts';
import { Overtaken } from '../store/last-sequence.ts';
import { backoffMs } from '../store/retry.ts';
import type { TransactAction } from '../store/table.ts';
import type { ConsumerContext, Received } from './consumer-context.ts';
import type { LeasedHandler, TransactionalContext, TransactionalHandler } from './handler.ts';
import { outOfTime, RESPONSE_MARGIN_MS } from './leased-run.ts';
import { readEvent } from './message.ts';
import {
  failUnclaimed,
  type MessageOutcome,
  refused,
  reportOutage,
  reportProcessed,
} from './message-outcome.ts';
import { isOutageOf } from './outage.ts';

/** The maximum number of consecutive runs of a transactional handler whose conditions fail. */
const CONDITION_TRIES = 4;

/** With less time than this left, the handler is not run again immediately, milliseconds. */
const TRY_MIN_MS = 2_000;

/**
 * Runs a transactional handler without a claim. The handler only reads and returns; its writes and the inbox row are one
 * transaction, on the condition that the row does not exist.
 *
 * @returns `undefined` if the row exists, and the message has to be claimed
 * @throws {@link Overtaken} if the message must pass the gate again, the table's error if it cannot be rejected
 */
export async function runUnclaimed(
  received: Received,
  handler: TransactionalHandler,
  envelope: HandledEvent,
): Promise<MessageOutcome | undefined> {
  const { delivery, span, logFields } = received;
  const { receives, endsBy } = delivery;
  const remainingMs = () => Math.max(0, endsBy - received.clock.now());
  try {
    const event = await readEvent(handler.definition, envelope);
    const given = { attempt: receives, remainingMs, logFields };
    return await onFreshReads(received, remainingMs, async () =>
      commit(received, await span.run(() => actionsOf(received, handler, event, given))),
    );
  } catch (error) {
    if (error instanceof Overtaken) throw error;
    if (isMailroomError(error, 'ALREADY_PROCESSED')) return commit(received, []);
    return failUnclaimed(received, error);
  }
}

async function commit(
  received: Received,
  actions: readonly TransactAction[],
): Promise<MessageOutcome | undefined> {
  const { inbox, config, telemetry, delivery } = received;
  try {
    const refusal = await commitUnclaimed(inbox, delivery.message, actions, delivery.receives);
    if (refusal === undefined) {
      telemetry.count('EventsCommitted', eventCount(actions));
      return reportProcessed(received);
    }
    return refusal.status === 'open' ? undefined : await refused(received, refusal);
  } catch (error) {
    if (isOutageOf(actions, config.tableName, error)) return reportOutage(received, error);
    throw error;
  }
}

/** Runs the handler for its actions, without waiting for it when the function's time is nearly up: the batch must be answered. */
async function actionsOf(
  { clock, outbox, table, delivery }: Received,
  handler: TransactionalHandler,
  event: HandledEvent,
  given: TransactionalContext,
): Promise<TransactAction[]> {
  const waitMs = given.remainingMs() - RESPONSE_MARGIN_MS;
  const run = commitOf(`The handler of ${event.type}`, () => handler.handle(event as never, given));
  const wanted = await withDeadline(clock, waitMs, run, (): never => {
    throw outOfTime();
  });
  const { writes = [], events = [] } = wanted;
  const actions = [...writes, ...(await outbox.entries(events, event))];
  // Two more actions: the inbox row, and the pointer of a rejected message that is readmitted; and the last sequence, if it has one.
  checkTransaction(actions, { table, clock, ownActions: delivery.message.place === undefined ? 2 : 3 });
  return actions;
}

/**
 * Adapts the handler to run under a claim. A redelivered message runs this way: if it kills its process without a claim, it
 * leaves no trace, no attempt is counted, and it takes its batch along.
 */
export function asLeased(ctx: ConsumerContext, handler: TransactionalHandler): LeasedHandler {
  return {
    kind: 'leased',
    definition: handler.definition,
    handle: async (event: HandledEvent, given) => {
      await onFreshReads(ctx, given.remainingMs, async () =>
        given.commit(
          await commitOf(`The handler of ${event.type}`, () => handler.handle(event as never, given)),
        ),
      );
    },
  };
}

/**
 * Runs a handler and commits its result; if only conditions or conflicts refused the transaction, runs it again on fresh reads.
 *
 * @throws the error of the last try
 */
export async function onFreshReads<T>(
  { clock, random }: Pick<ConsumerContext, 'clock' | 'random'>,
  remainingMs: () => number,
  work: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const again = isConditionRefused(error) && attempt < CONDITION_TRIES && remainingMs() > TRY_MIN_MS;
      if (!again) throw error;
      await clock.sleep(backoffMs(attempt, 20, 500, random));
    }
  }
}

/** Returns the commit that a function of the consumer returned. @throws `NO_COMMIT` if it returned something else */
export async function commitOf(what: string, run: () => Promise<Commit>): Promise<Commit> {
  const wanted: unknown = await run();
  const isList = Array.isArray(wanted);
  if (typeof wanted === 'object' && wanted !== null && !isList) return wanted;
  throw new MailroomError(
    'NO_COMMIT',
    `${what} returned ${isList ? 'a list' : typeof wanted}; it must return { writes, events }, or {} to write nothing.`,
  );
}

function isConditionRefused(error: unknown): boolean {
  if (!isMailroomError(error, 'TRANSACTION_CANCELLED')) return false;
  const codes = error.reasons.map((reason) => reason.code);
  return (
    codes.includes('ConditionalCheckFailed') &&
    codes.every(
      (code) => code === 'None' || code === 'ConditionalCheckFailed' || code === 'TransactionConflict',
    )
  );
}
