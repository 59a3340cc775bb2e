import type { SQSBatchResponse } from 'aws-lambda';
import { withDeadline } from '../base/deadline.ts';
import { errorCode, isMailroomError, MailroomError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { defineEvent, type EventDraft } from '../events/event.ts';
import type { ForeignSubscription } from '../events/foreign-event.ts';
import { TOO_OLD } from '../inbox/inbox-conditions.ts';
import { forgottenBecause, openInbox } from '../inbox/inbox-history.ts';
import { type Decision, type Settlement, settleMessage } from '../inbox/settle-message.ts';
import { startedEffects } from '../inbox/started-effects.ts';
import { storedCause } from '../observe/redaction.ts';
import type { CausingEvent } from '../outbox/outbox-entry.ts';
import { eventCount } from '../outbox/transaction-checks.ts';
import type { Note } from '../store/operation-record.ts';
import type { InboxRow } from '../store/rows.ts';
import type { TransactAction } from '../store/table.ts';
import { type ConsumerContext, receivedOf } from './consumer-context.ts';
import { readDelivery } from './delivery.ts';
import type { PastEffect, RejectedContext } from './handler.ts';
import { outOfTime, RESPONSE_MARGIN_MS } from './leased-run.ts';
import { type Handlers, handlerOf, readEvent } from './message.ts';
import { commitOf, onFreshReads } from './transactional-run.ts';

/** An operator's request to a consumer's function to end a message without its handler. */
export type SettleRequest = RejectRequest | CommitRequest;

/** Runs the `rejected` function of a dead letter's handler, and commits its result with DISCARDED. */
export interface RejectRequest {
  readonly mailroomReject: SettleNote & {
    /** The message's body, exactly as in the queue. */
    readonly body: string;
  };
}

/** Commits an operator's own writes and events with PROCESSED. */
export interface CommitRequest {
  readonly mailroomCommit: SettleNote & {
    readonly eventId: string;
    /** As in {@link Settlement}. @default false */
    readonly force?: boolean | undefined;
    /** The message's event: the new ones inherit its correlation id and trace. @default they begin a chain */
    readonly cause?: CausingEvent | undefined;
    /** In the format of the DynamoDB document client. */
    readonly writes: readonly TransactAction[];
    /** Events of the consumer's service. Their payloads are not validated: no code here has their schemas. */
    readonly events: readonly OperatorEvent[];
  };
}

interface SettleNote extends Note {
  /** As in {@link Settlement}. @default false */
  readonly effectsChecked?: boolean | undefined;
}

/** An event as an operator writes it. */
export interface OperatorEvent {
  readonly type: string;
  /** @default 1 */
  readonly version?: number | undefined;
  readonly aggregateType: string;
  readonly aggregateId: string;
  readonly data: unknown;
}

/** The result: the decision, or the reason why nothing was changed. To a caller that treats the function as an SQS handler, it reports no failures. */
export interface SettleAnswer extends SQSBatchResponse {
  readonly settled:
    | Decision
    | { readonly status: 'refused'; readonly code: string; readonly message: string };
}

/** The consumer's function that receives a request. */
export interface SettlingFunction {
  readonly ctx: ConsumerContext;
  readonly handlers: Handlers;
  /** The consumer's foreign events. */
  readonly foreign: readonly ForeignSubscription[];
  /** The time at which this invocation is stopped, epoch milliseconds. */
  readonly endsBy: number;
}

/** Returns the invocation as a {@link SettleRequest}; `undefined` if it is not one. */
export function settleRequestOf(event: unknown): SettleRequest | undefined {
  if (!isObject(event) || 'Records' in event) return undefined;
  const { mailroomReject, mailroomCommit } = event;
  return isObject(mailroomReject) || isObject(mailroomCommit)
    ? (event as unknown as SettleRequest)
    : undefined;
}

/**
 * Ends a message for an operator, by `settleMessage`: what the handler's `rejected` function returns, or what the operator has
 * written, commits if and only if it ends the message.
 *
 * @throws the table's error if the outcome is unknown: the same request, repeated, reports it
 */
export async function settleForOperator(
  settling: SettlingFunction,
  request: SettleRequest,
): Promise<SettleAnswer> {
  const { ctx } = settling;
  let failed: { readonly error: unknown } | undefined;
  const answer = (settled: SettleAnswer['settled']): SettleAnswer => ({ batchItemFailures: [], settled });
  try {
    await openInbox(ctx.inbox);
    const wanted = await ('mailroomReject' in request
      ? rejection(settling, request.mailroomReject)
      : operatorCommit(settling, request.mailroomCommit));
    let made: readonly TransactAction[] = [];
    const writes = async (row: InboxRow | undefined) => {
      try {
        made = await wanted.writes(row);
        return made;
      } catch (error) {
        failed = { error };
        throw error;
      }
    };
    const decision = await onFreshReads(ctx, remainingMs(settling), () =>
      settleMessage(ctx, { ...wanted.settlement, writes }, wanted.status),
    );
    const { status } = decision;
    if (status === 'discarded' || status === 'resolved') {
      ctx.telemetry.count('EventsCommitted', eventCount(made));
      ctx.telemetry.flush();
    }
    return answer(decision);
  } catch (error) {
    if (failed?.error !== error && !isMailroomError(error)) throw error;
    const { lastError: message } = storedCause(error, ctx.inbox.redact);
    return answer({ status: 'refused', code: errorCode(error), message });
  }
}

/** A request that can be carried out. */
interface Wanted {
  readonly settlement: Omit<Settlement, 'writes'>;
  readonly status: 'PROCESSED' | 'DISCARDED';
  readonly writes: (row: InboxRow | undefined) => Promise<readonly TransactAction[]>;
}

/**
 * @throws `NO_REJECTED_FUNCTION`, `EVENT_TOO_OLD`, and the errors of a message that cannot be read
 */
async function rejection(
  settling: SettlingFunction,
  { body, ...note }: RejectRequest['mailroomReject'],
): Promise<Wanted> {
  const { ctx, handlers, foreign, endsBy } = settling;
  const record = { messageId: 'operator', receiptHandle: '', body: String(body) };
  const delivery = readDelivery(record as never, { beganAt: ctx.clock.now(), endsBy }, foreign);
  if ('problem' in delivery.content) throw delivery.content.problem;
  const { consumer } = ctx.config;
  const handler = handlerOf(handlers, consumer, delivery.content);
  const { rejected } = handler;
  if (rejected === undefined) {
    throw new MailroomError(
      'NO_REJECTED_FUNCTION',
      `The handler of ${handler.definition.type} has no \`rejected\` function. Add one, or discard the message without --reject.`,
    );
  }
  const event = await readEvent(handler.definition, delivery.content.envelope);
  const { eventId } = delivery.message;
  const { logFields } = receivedOf(ctx, delivery);
  return {
    settlement: { ...note, consumer, eventId, readsResults: true },
    status: 'DISCARDED',
    writes: async (row) => {
      refuseTooOld(ctx, eventId, row);
      const given: RejectedContext = {
        by: note.by,
        reason: note.reason,
        cause: causeOf(row),
        effects: pastEffects(ctx, eventId, row),
        remainingMs: remainingMs(settling),
        logFields,
      };
      const waitMs = given.remainingMs() - RESPONSE_MARGIN_MS;
      const run = commitOf(event.type, async () => rejected(event as never, given));
      const { writes = [], events = [] } = await withDeadline(ctx.clock, waitMs, run, (): never => {
        throw outOfTime();
      });
      return [...writes, ...(await ctx.outbox.entries(events, event))];
    },
  };
}

/** A message whose row may have expired may have been processed: nothing is rejected then. */
function refuseTooOld({ inbox }: ConsumerContext, eventId: string, row: InboxRow | undefined): void {
  if (row?.runAnyway) return;
  const isForgotten = row === undefined || (row.status === 'REJECTED' && row.reason === TOO_OLD);
  const why = isForgotten ? forgottenBecause(inbox, eventId) : undefined;
  if (why === undefined) return;
  throw new MailroomError(
    TOO_OLD,
    `${why} If you know that it was never processed, allow it first with \`messages allow\`; otherwise discard it without --reject.`,
  );
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
      const result = row?.effects?.[effect]?.result;
      return [
        effect,
        { state, idempotencyKey: key, result: result === undefined ? undefined : JSON.parse(result) },
      ];
    }),
  );
}

/** @throws `INVALID_EVENT`, `BAD_EVENT_DEFINITION` */
async function operatorCommit(
  { ctx }: SettlingFunction,
  { eventId, cause, writes, events, ...note }: CommitRequest['mailroomCommit'],
): Promise<Wanted> {
  const drafts = events.map((event, index) => draftOf(event, index, ctx.config.service));
  return {
    settlement: { ...note, consumer: ctx.config.consumer, eventId },
    status: 'PROCESSED',
    writes: async () => [...writes, ...(await ctx.outbox.entries(drafts, cause))],
  };
}

/** Accepts every payload: the operator's event has no definition here. */
const UNVALIDATED = {
  '~standard': { version: 1, vendor: 'mailroom', validate: (value: unknown) => ({ value }) },
} as const;

function draftOf(event: OperatorEvent, index: number, source: string): EventDraft {
  const { type, version = 1, aggregateType, aggregateId, data } = event;
  for (const [name, value] of Object.entries({ type, aggregateType })) {
    if (typeof value === 'string' && value !== '') continue;
    throw new MailroomError('INVALID_EVENT', `events[${index}].${name} must be a non-empty string.`);
  }
  return defineEvent({ source, type, version, aggregateType, schema: UNVALIDATED }).create({
    aggregateId,
    data,
  });
}

function remainingMs({ ctx, endsBy }: SettlingFunction): () => number {
  return () => Math.max(0, endsBy - ctx.clock.now());
}
