import { createHash } from 'node:crypto';
import type { SQSBatchResponse } from 'aws-lambda';
import { MailroomError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { defineEvent, type EventDraft } from '../events/event.ts';
import type { Decision } from '../inbox/settle-message.ts';
import type { EffectsChecked } from '../inbox/started-effects.ts';
import type { CausingEvent } from '../outbox/outbox-entry.ts';
import { eventIdTime, isUnreadableId } from '../store/event-id.ts';
import { isExternalEventId } from '../store/external-id.ts';
import type { NumberedEvent } from '../store/last-sequence.ts';
import type { Note } from '../store/operation-record.ts';
import type { TransactAction } from '../store/table.ts';

/** An operator's request to a consumer's function to end a message without its handler. */
export type SettleRequest = RejectRequest | CommitRequest;

/** Runs the `rejected` function of a dead letter's handler, and commits its result with DISCARDED. */
export interface RejectRequest {
  readonly mailroomReject: SettleNote & {
    /** The message's body, exactly as in the queue. */
    readonly body: string;
    /** The time at which SQS received the message, epoch milliseconds: that of an external event without its own. */
    readonly sentAt?: number | undefined;
  };
}

/** Commits an operator's own writes and events with PROCESSED. */
export interface CommitRequest {
  readonly mailroomCommit: SettleNote & {
    readonly eventId: string;
    /** Takes the message from a worker that still holds it. @default false */
    readonly force?: boolean | undefined;
    /**
     * The message's event: the new ones inherit its correlation id and trace. Its `sequence` is passed over if the message has no row.
     *
     * @default they begin a chain
     */
    readonly cause?: (CausingEvent & NumberedEvent) | undefined;
    /** In the format of the DynamoDB document client. */
    readonly writes: readonly TransactAction[];
    /** Events of the consumer's service. Their payloads are not validated: no code here has their schemas. */
    readonly events: readonly OperatorEvent[];
  };
}

/** The operator, the reason, and what the operator has checked. */
interface SettleNote extends Note {
  /** The operator has asked the providers of the effects that may have happened. @default false */
  readonly effectsChecked?: EffectsChecked | undefined;
}

/** An event as an operator writes it. */
export interface OperatorEvent {
  readonly type: string;
  /** @default 1 */
  readonly version?: number | undefined;
  readonly aggregateType: string;
  readonly aggregateId: string;
  /** Its number among those of its aggregate, if its definition declares one. @default none */
  readonly sequence?: number | undefined;
  readonly data: unknown;
}

/**
 * The result: the decision, or the reason why nothing was changed. To a caller that treats the function as an SQS handler, it reports
 * no failures.
 */
export interface SettleAnswer extends SQSBatchResponse {
  readonly settled:
    | Decision
    | { readonly status: 'refused'; readonly code: string; readonly message: string };
}

/** Returns true if an invocation is meant as a {@link SettleRequest}. */
export function isSettleRequest(event: unknown): event is Readonly<Record<string, unknown>> {
  return isObject(event) && ('mailroomReject' in event || 'mailroomCommit' in event);
}

/** Checks the writes of an operator, for the store in which they would commit. @throws `BAD_WRITE`, `BAD_ITEM` */
export type WritesCheck = (writes: readonly TransactAction[]) => void;

/**
 * Checks every member of a request: it comes from outside, and whatever it names would commit.
 *
 * @throws `BAD_ARGUMENT`, naming the member, and the errors of `checkWrites`
 */
export function checkedRequest(
  event: Readonly<Record<string, unknown>>,
  checkWrites: WritesCheck,
): SettleRequest {
  if ('mailroomReject' in event) {
    members('the invocation', event, ['mailroomReject']);
    return { mailroomReject: checkedReject(event.mailroomReject) };
  }
  members('the invocation', event, ['mailroomCommit']);
  return { mailroomCommit: checkedCommit(event.mailroomCommit, checkWrites) };
}

const NOTE = ['by', 'reason', 'effectsChecked'];

function checkedReject(request: unknown): RejectRequest['mailroomReject'] {
  const { body, sentAt, ...note } = members('mailroomReject', request, [...NOTE, 'body', 'sentAt']);
  if (sentAt !== undefined && !Number.isSafeInteger(sentAt))
    throw bad('mailroomReject.sentAt', 'must be a time in epoch milliseconds');
  return {
    ...checkedNote('mailroomReject', note),
    body: textAt('mailroomReject.body', body),
    sentAt: sentAt as number | undefined,
  };
}

function checkedCommit(request: unknown, checkWrites: WritesCheck): CommitRequest['mailroomCommit'] {
  const at = 'mailroomCommit';
  const own = ['eventId', 'force', 'cause', 'writes', 'events'];
  const { eventId, force, cause, writes, events, ...note } = members(at, request, [...NOTE, ...own]);
  const id = textAt(`${at}.eventId`, eventId);
  if (!isUnreadableId(id) && !isExternalEventId(id)) eventIdOf(id);
  return {
    ...checkedNote(at, note),
    eventId: id,
    force: flagAt(`${at}.force`, force),
    cause: cause === undefined ? undefined : checkedCause(cause),
    ...checkedFix({ writes, events }, checkWrites),
  };
}

/**
 * Checks what an operator wants to commit. The command does so before it records the decision, the function before it commits.
 *
 * @throws `BAD_ARGUMENT`, naming the member, and the errors of `checkWrites`
 */
export function checkedFix(
  { writes, events }: Readonly<Record<'writes' | 'events', unknown>>,
  checkWrites: WritesCheck,
): Pick<CommitRequest['mailroomCommit'], 'writes' | 'events'> {
  const given = listAt('writes', writes).map(
    (one, index) => objectAt(`writes[${index}]`, one) as TransactAction,
  );
  checkWrites(given);
  return {
    writes: given,
    events: listAt('events', events).map((one, index) => checkedEvent(`events[${index}]`, one)),
  };
}

function eventIdOf(id: string): void {
  try {
    eventIdTime(id);
  } catch (error) {
    throw bad('mailroomCommit.eventId', 'must be an event id, or unreadable-<digest>', error);
  }
}

function checkedEvent(at: string, event: unknown): OperatorEvent {
  const allowed = ['type', 'version', 'aggregateType', 'aggregateId', 'sequence', 'data'];
  const { type, version, aggregateType, aggregateId, sequence, data } = members(at, event, allowed);
  if (version !== undefined && !Number.isSafeInteger(version))
    throw bad(`${at}.version`, 'must be a whole number from 1');
  if (sequence !== undefined && (!Number.isSafeInteger(sequence) || Number(sequence) < 1))
    throw bad(`${at}.sequence`, 'must be a whole number from 1');
  return {
    type: textAt(`${at}.type`, type),
    version: version as number | undefined,
    aggregateType: textAt(`${at}.aggregateType`, aggregateType),
    aggregateId: textAt(`${at}.aggregateId`, aggregateId),
    sequence: sequence as number | undefined,
    data,
  };
}

const INHERITED = ['traceId', 'traceparent', 'tracestate', 'source', 'type', 'aggregateType', 'aggregateId'];

/** The members that new events inherit, and those of its place in an order; others are ignored. */
function checkedCause(cause: unknown): CausingEvent & NumberedEvent {
  const { eventId, correlationId, hops, sequence, ...texts } = objectAt('cause', cause);
  if (hops !== undefined && (!Number.isSafeInteger(hops) || Number(hops) < 1))
    throw bad('cause.hops', 'must be a whole number from 1');
  const kept = Object.entries(texts).filter(
    ([name, value]) => INHERITED.includes(name) && typeof value === 'string',
  );
  return {
    eventId: textAt('cause.eventId', eventId),
    correlationId: textAt('cause.correlationId', correlationId),
    hops: hops as number | undefined,
    ...(Number.isSafeInteger(sequence) && { sequence: sequence as number }),
    ...Object.fromEntries(kept),
  };
}

function checkedNote(at: string, { by, reason, effectsChecked }: Readonly<Record<string, unknown>>) {
  return {
    by: textAt(`${at}.by`, by),
    reason: textAt(`${at}.reason`, reason),
    effectsChecked: isDigest(effectsChecked)
      ? effectsChecked
      : flagAt(`${at}.effectsChecked`, effectsChecked),
  };
}

/** The digest of effects that were shown to the operator. */
function isDigest(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{12}$/.test(value);
}

/** Accepts every payload: the operator's event has no definition here. */
const UNVALIDATED = {
  '~standard': { version: 1, vendor: 'mailroom', validate: (value: unknown) => ({ value }) },
} as const;

/** Makes an operator's event one of a service. @throws `BAD_EVENT_DEFINITION` */
export function draftOf(
  { type, version = 1, aggregateType, aggregateId, sequence, data }: OperatorEvent,
  source: string,
): EventDraft {
  const definition = defineEvent({
    ...{ source, type, version, aggregateType, schema: UNVALIDATED },
    sequence: sequence !== undefined,
  });
  return definition.create({ aggregateId, sequence: sequence as number, data });
}

/** Identifies the commit of a `rejected` function: there is one for each message. */
export const REJECTED_COMMIT = 'rejected';

/** Identifies what a request commits, so that a repeated one recognizes its own commit. */
export function commitIdOf(request: SettleRequest): string {
  if ('mailroomReject' in request) return REJECTED_COMMIT;
  const { writes, events } = request.mailroomCommit;
  return createHash('sha256').update(JSON.stringify({ writes, events })).digest('hex').slice(0, 32);
}

function members(at: string, value: unknown, allowed: readonly string[]): Readonly<Record<string, unknown>> {
  const object = objectAt(at, value);
  const unknown = Object.keys(object).find((name) => !allowed.includes(name));
  if (unknown !== undefined) throw bad(`${at}.${unknown}`, `is unknown; known are ${allowed.join(', ')}`);
  return object;
}

function objectAt(at: string, value: unknown): Readonly<Record<string, unknown>> {
  if (isObject(value) && !Array.isArray(value)) return value;
  throw bad(at, 'must be an object');
}

function listAt(at: string, value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw bad(at, 'must be a list');
}

function textAt(at: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  throw bad(at, 'must be a non-empty string');
}

function flagAt(at: string, value: unknown): boolean {
  if (value === undefined || typeof value === 'boolean') return value ?? false;
  throw bad(at, 'must be true or false');
}

function bad(at: string, allowed: string, cause?: unknown): MailroomError {
  return new MailroomError('BAD_ARGUMENT', `${at} ${allowed}. Nothing was changed.`, { cause });
}
