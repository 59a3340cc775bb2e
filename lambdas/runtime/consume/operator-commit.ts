import { errorCode, isMailroomError, MailroomError } from '../base/errors.ts';
import { poison } from '../base/poison.ts';
import type { ExternalSubscription } from '../events/external-event.ts';
import { STALE, TOO_OLD } from '../inbox/inbox-conditions.ts';
import { forgottenBecause } from '../inbox/inbox-history.ts';
import { type Settlement, settleMessage } from '../inbox/settle-message.ts';
import { startedEffects } from '../inbox/started-effects.ts';
import { redactedError, storedCause } from '../observe/redaction.ts';
import type { DiscardedRow, InboxRow, ProcessedRow } from '../store/inbox-row.ts';
import { placeInOrder } from '../store/last-sequence.ts';
import { wroteNothing } from '../store/retry.ts';
import { commitOf } from './commit-of.ts';
import { type ConsumerContext, receivedOf } from './consumer-context.ts';
import { readDelivery } from './delivery.ts';
import type { PastEffect, RejectedContext } from './handler.ts';
import { payloadInTime } from './load-payload.ts';
import { freshEvent, type Handlers, handlerOf, readEvent, refText } from './message.ts';
import { orderOfHandler, placeOf } from './order-gate.ts';
import {
  type CommitRequest,
  checkedRequest,
  commitIdOf,
  draftOf,
  type RejectRequest,
  type SettleAnswer,
  type SettleRequest,
} from './settle-requests.ts';
import type { MadeCommit, SettlingStore } from './settling-store.ts';
import { onFreshReads } from './transactional-run.ts';

/** The consumer's function that receives a request. */
export interface SettlingFunction {
  readonly ctx: ConsumerContext;
  readonly store: SettlingStore;
  readonly handlers: Handlers;
  /** The consumer's external events. */
  readonly external: readonly ExternalSubscription[];
  /** The time at which this invocation is stopped, epoch milliseconds. */
  readonly endsBy: number;
}

/**
 * Ends a message for an operator, by `settleMessage`: what the handler's `rejected` function returns, or what the operator has
 * written, commits if and only if it ends the message.
 *
 * @param event - an invocation for which `isSettleRequest` is true
 * @throws the error of the table or the database if the outcome is unknown: the same request, repeated, reports it
 */
export async function settleForOperator(
  settling: SettlingFunction,
  event: Readonly<Record<string, unknown>>,
): Promise<SettleAnswer> {
  const { ctx, store } = settling;
  let failed: { readonly error: unknown } | undefined;
  const answer = (settled: SettleAnswer['settled']): SettleAnswer => ({ batchItemFailures: [], settled });
  try {
    const request = checkedRequest(event, store.checkWrites);
    const commitId = commitIdOf(request);
    await ctx.inbox.open();
    const wanted = await wantedBy(settling, request);
    let events = 0;
    const watched =
      <A extends unknown[], R>(run: (...args: A) => Promise<R>) =>
      async (...args: A) => {
        try {
          return await run(...args);
        } catch (error) {
          failed = { error };
          throw error;
        }
      };
    const { writes, work } = store.committing(wanted.make, remainingMs(settling), (count) => {
      events = count;
    });
    const commit = { commitId, writes: writes && watched(writes), work: work && watched(work) };
    const deps = { ...ctx, inboxChanges: store.inboxChanges };
    const decision = await onFreshReads(ctx, remainingMs(settling), () =>
      settleMessage(deps, { ...wanted.settlement, ...commit }, wanted.status),
    );
    if ('earlier' in decision && decision.earlier !== undefined)
      return answer(earlierDecision(decision.earlier, commitId));
    if (decision.status === 'discarded' || decision.status === 'resolved') {
      ctx.telemetry.count('EventsCommitted', events);
      ctx.telemetry.flush();
    }
    return answer(decision);
  } catch (error) {
    // Of a transaction that may have happened, only the row tells the outcome.
    const isKnown = isMailroomError(error) ? error.code !== 'COMMIT_UNKNOWN' : wroteNothing(error);
    if (failed?.error !== error && !isKnown) throw error;
    const { redact } = ctx.inbox.rules;
    const { lastError: message } = storedCause(error, redact);
    const code = errorCode(redact === undefined ? error : redactedError(error, redact));
    return answer({ status: 'refused', code, message });
  }
}

/** The answer for a message that was settled before: by this very request, by its handler, or by another decision. */
function earlierDecision(row: ProcessedRow | DiscardedRow, commitId: string): SettleAnswer['settled'] {
  const isResolved = row.status === 'PROCESSED';
  if (row.commitId === commitId) return { status: isResolved ? 'resolved' : 'discarded' };
  if (isResolved && row.resolvedBy === undefined) return { status: 'processed' };
  if (!isResolved && row.reason === STALE)
    return settledBefore('The message was discarded as stale by its consumer.');
  const [by, reason] = isResolved
    ? [row.resolvedBy, row.resolvedReason]
    : [row.discardedBy, row.discardedReason];
  return settledBefore(
    `The message is already ${row.status}, by ${by ?? 'an operator'} (${reason ?? 'no reason'}).`,
  );
}

function settledBefore(how: string): SettleAnswer['settled'] {
  return { status: 'refused', code: 'ALREADY_SETTLED', message: `${how} Nothing was committed now.` };
}

/** A request that can be carried out. */
interface WantedDecision {
  readonly settlement: Omit<Settlement, 'writes' | 'work' | 'commitId'>;
  readonly status: 'PROCESSED' | 'DISCARDED';
  readonly make: MadeCommit;
}

function wantedBy(
  settling: SettlingFunction,
  request: SettleRequest,
): Promise<WantedDecision> | WantedDecision {
  return 'mailroomReject' in request
    ? rejection(settling, request.mailroomReject)
    : operatorCommit(settling, request.mailroomCommit);
}

/**
 * @throws `NO_REJECTED_FUNCTION`, `EVENT_TOO_OLD`, and the errors of a message that cannot be read
 */
async function rejection(
  settling: SettlingFunction,
  { body, sentAt, by, reason, effectsChecked }: RejectRequest['mailroomReject'],
): Promise<WantedDecision> {
  const { ctx, handlers, external, endsBy } = settling;
  const given = { messageId: 'operator', body, sentAt };
  const delivery = readDelivery(given, { beganAt: ctx.clock.now(), endsBy }, external);
  if ('problem' in delivery.content) throw delivery.content.problem;
  if ('skipped' in delivery.content) throw poison('NO_EVENT', delivery.content.skipped);
  const { consumer } = ctx.config;
  const handler = handlerOf(handlers, consumer, delivery.content);
  const { rejected } = handler;
  if (rejected === undefined) {
    throw new MailroomError(
      'NO_REJECTED_FUNCTION',
      `The handler of ${handler.definition.type} has no \`rejected\` function. Add one, or discard the message without --reject.`,
    );
  }
  const received = receivedOf(ctx, delivery);
  const envelope = await payloadInTime(received, delivery.content.envelope);
  const event = await readEvent(handler.definition, envelope);
  const { eventId } = delivery.message;
  const { logFields } = received;
  const order = placeOf(ctx, handler, envelope);
  return {
    settlement: {
      by,
      reason,
      effectsChecked,
      consumer,
      eventId,
      readsResults: true,
      order,
      isStrict: isStrict(ctx),
    },
    status: 'DISCARDED',
    make: async (row, tx) => {
      refuseTooOld(ctx, eventId, row);
      const effects = pastEffects(ctx, eventId, row);
      const given = {
        by,
        reason,
        cause: causeOf(row),
        effects,
        remainingMs: remainingMs(settling),
        logFields,
        tx,
      };
      const commit = await commitOf(`The rejected function of ${event.type}`, async () =>
        rejected((await freshEvent(handler.definition, envelope)) as never, given),
      );
      return { commit, cause: event };
    },
  };
}

/** @throws `BAD_EVENT_DEFINITION`, `EVENT_TOO_OLD` */
function operatorCommit(
  { ctx, handlers }: SettlingFunction,
  {
    eventId,
    cause,
    writes,
    events,
    by,
    reason,
    effectsChecked,
    force = false,
  }: CommitRequest['mailroomCommit'],
): WantedDecision {
  const { consumer, service } = ctx.config;
  const drafts = events.map((event) => draftOf(event, service));
  const { source = '', type = '' } = cause ?? {};
  const handler = handlers.get(refText({ source, type }));
  const ordered = handler && orderOfHandler(handler, ctx.config);
  const order = ordered && placeInOrder(consumer, ordered, cause ?? {});
  return {
    settlement: { by, reason, effectsChecked, force, consumer, eventId, order, isStrict: isStrict(ctx) },
    status: 'PROCESSED',
    make: async (row) => {
      if (!force) refuseTooOld(ctx, eventId, row);
      return { commit: { writes: writes.length === 0 ? undefined : writes, events: drafts }, cause };
    },
  };
}

/** A message whose row may have expired may have been processed: nothing is committed for it then. */
function refuseTooOld({ inbox }: ConsumerContext, eventId: string, row: InboxRow | undefined): void {
  if (row?.runAnyway) return;
  const isForgotten = row === undefined || (row.status === 'REJECTED' && row.reason === TOO_OLD);
  const why = isForgotten ? forgottenBecause(inbox.rules, eventId) : undefined;
  if (why === undefined) return;
  throw new MailroomError(TOO_OLD, `${why} Otherwise, end it without a commit.`);
}

function causeOf(row: InboxRow | undefined): RejectedContext['cause'] {
  if (row?.lastError === undefined) return undefined;
  const code = row.status === 'REJECTED' ? row.reason : undefined;
  return { code: code ?? 'UNKNOWN', message: row.lastError };
}

function pastEffects(
  { config, clock }: ConsumerContext,
  eventId: string,
  row: InboxRow | undefined,
): RejectedContext['effects'] {
  const started = startedEffects(config.consumer, eventId, row, clock.now());
  return Object.fromEntries(
    started.map(({ effect, key, state }): [string, PastEffect] => {
      const result = resultOf(effect, row?.effects?.[effect]?.result);
      return [effect, { state, idempotencyKey: key, result }];
    }),
  );
}

/** @throws `UNREADABLE_ROW` if the row was changed by hand: the parser's own message would quote the result */
function resultOf(effect: string, stored: string | undefined): unknown {
  try {
    return stored === undefined ? undefined : JSON.parse(stored);
  } catch {
    throw new MailroomError(
      'UNREADABLE_ROW',
      `The stored result of effect "${effect}" is not JSON, so the rejected function cannot read it. Discard the message without --reject.`,
    );
  }
}

function isStrict({ config }: ConsumerContext): boolean {
  return config.order?.mode === 'strict';
}

function remainingMs({ ctx, endsBy }: SettlingFunction): () => number {
  return () => Math.max(0, endsBy - ctx.clock.now());
}
