import { timeText } from '../base/clock.ts';
import { explainedBy, isMailroomError, MailroomError } from '../base/errors.ts';
import { isPoison, poison } from '../base/poison.ts';
import type { InboxRefusal } from '../inbox/inbox.ts';
import { TOO_OLD } from '../inbox/inbox-conditions.ts';
import { OUTCOME } from '../observe/message-spans.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import { isUnreadableId } from '../store/event-id.ts';
import { reportEffectsOfUnclaimed } from './claimed-effects.ts';
import type { Received } from './consumer-context.ts';
import { deliversHeartbeat } from './delivery.ts';
import { waitsSince } from './expiry.ts';
import { writeHint } from './failed-hints.ts';

/** The code in the log line of a worker that has lost its message. */
export const FENCE_LOST = 'FENCE_LOST';

/** The outcome of a message in this invocation. */
export type MessageOutcome =
  /** `duplicate`: an earlier run, or an operator, has ended the message. @default false */
  { readonly kind: 'done'; readonly duplicate?: boolean | undefined } | ShownAgain;

/** Reported to SQS as failed: visible again after `afterMs`, or moved to the DLQ once its receives are exhausted. */
export interface ShownAgain {
  readonly kind: 'again';
  readonly afterMs: number;
  readonly error: unknown;
  /** The row is REJECTED: no receive of this message runs its handler. @default false */
  readonly rejected?: boolean | undefined;
}

/** The outcome of a message in its span. A message that was put back, or that another worker holds, is `waiting`. */
type SpanOutcome =
  | 'waiting'
  | 'processed'
  | 'skipped'
  | 'duplicate'
  | 'superseded'
  | 'stale'
  | 'rejected'
  | 'failed'
  | 'retry-later'
  | 'outage';

/** The outcome of a message that fails for SQS and becomes visible again after `afterMs`. */
export function again(afterMs: number, error: unknown): ShownAgain {
  return { kind: 'again', afterMs, error };
}

/** A message that fails for its source, and its next visibility. */
interface Failure {
  readonly is: 'rejected' | 'failed' | 'retry-later' | 'outage' | 'out-of-time' | 'leased' | 'limited';
  readonly error: unknown;
  /** @default 0: immediately */
  readonly afterMs?: number | undefined;
}

/** The end of a message in this invocation, as it is decided and before it is reported. */
export type MessageEnd = Failure | { readonly is: 'processed' | 'superseded' | 'stale' };

/** The metric and the log line of each failure. One without a text is part of the ordinary course. */
const REPORTED: Readonly<
  Record<
    Failure['is'],
    { readonly count?: (to: Telemetry) => void; readonly text?: string; readonly outcome?: SpanOutcome }
  >
> = {
  rejected: {
    count: (to) => to.count('MessagesRejected'),
    text: 'A message was rejected; it becomes a dead letter',
    outcome: 'rejected',
  },
  failed: {
    count: (to) => to.count('MessagesFailed'),
    text: 'A message failed and will be retried',
    outcome: 'failed',
  },
  // Its handler chose the delay: it waits, and is not counted as a failure.
  'retry-later': { text: 'A message failed and will be retried', outcome: 'retry-later' },
  outage: { count: (to) => to.count('TableFailures'), outcome: 'outage' },
  'out-of-time': { text: 'A handler ran out of time', outcome: 'failed' },
  leased: { count: (to) => to.count('MessagesLeased') },
  limited: { count: (to) => to.count('MessagesLimited') },
};

/** Reports the end of a message: in metrics, in the log and in its span. */
export function report(received: Received, finding: MessageEnd): MessageOutcome {
  const { telemetry, clock, delivery, span } = received;
  if ('error' in finding) return reportFailure(received, finding);
  span.set(OUTCOME, finding.is satisfies SpanOutcome);
  if (finding.is === 'superseded') telemetry.count('MessagesSuperseded');
  if (finding.is === 'stale') reportStale(received);
  // A heartbeat is not counted: the latency of an idle consumer would be that of heartbeats, and one that fails at every message would seem
  // to process some.
  if (finding.is !== 'processed' || deliversHeartbeat(delivery)) return { kind: 'done' };
  telemetry.count('MessagesProcessed');
  const since = waitsSince(delivery.message);
  if (since !== undefined) telemetry.duration('ProcessLatency', clock.now() - since);
  return { kind: 'done' };
}

function reportStale({ telemetry, clock, delivery }: Received): void {
  telemetry.count('MessagesStale');
  const since = waitsSince(delivery.message);
  telemetry.log.warn('A message was discarded as stale: it had waited for longer than its handler takes', {
    ...(since !== undefined && { waitedMs: clock.now() - since }),
  });
}

function reportFailure({ telemetry, span }: Received, { is, error, afterMs = 0 }: Failure): ShownAgain {
  const { count, text = outageText(error), outcome } = REPORTED[is];
  count?.(telemetry);
  if (outcome !== undefined) {
    telemetry.log.error(text, { error: error as Error });
    span.set(OUTCOME, outcome);
    if (outcome !== 'retry-later') span.fail(error);
  }
  return is === 'rejected' ? rejected(error) : again(afterMs, error);
}

/** Mailroom could not reach its table, or cannot read a row: no attempt is counted, and the message becomes visible again once that may be over. */
export function reportOutage(received: Received, error: unknown): ShownAgain {
  const afterMs = received.delays.outageMs(received.delivery.receives);
  return reportFailure(received, { is: 'outage', error, afterMs });
}

/** The handler was still running when the function's time was up, and the message has no row: no attempt is counted. */
export function reportOutOfTime(received: Received, error: unknown): ShownAgain {
  const afterMs = received.delays.outageMs(received.delivery.receives);
  return reportFailure(received, { is: 'out-of-time', error, afterMs });
}

function outageText(error: unknown): string {
  if (isMailroomError(error, 'NO_TIME_LEFT') || isMailroomError(error, 'OUT_OF_TIME'))
    return 'Slow calls of the table, or others of its batch, used up the time of a message; no attempt is counted';
  if (isMailroomError(error, 'PAYLOADS_UNAVAILABLE'))
    return 'Mailroom could not reach the payload of a message in S3; no attempt is counted';
  const what = isMailroomError(error, 'UNREADABLE_ROW') ? 'cannot read a row of' : 'could not reach';
  return `Mailroom ${what} its table; no attempt of the message is counted`;
}

/** The message is healthy and carries no event: it needs no row. */
export function reportSkipped({ telemetry, span }: Received, why: string): MessageOutcome {
  telemetry.count('MessagesSkipped');
  telemetry.log.info('A message without an event was skipped', { why });
  span.set(OUTCOME, 'skipped' satisfies SpanOutcome);
  return { kind: 'done' };
}

/** A message with less time than this left for its handler is returned to the queue without an attempt, milliseconds. */
export const START_MIN_MS = 2_000;

/** The function has too little time left to start the message. */
export function tooLate({ delays, delivery: { receives } }: Received): ShownAgain {
  return again(delays.outageMs(receives), noTimeLeft());
}

/** Makes the error of a message that is not started, because its function is about to end. */
export function noTimeLeft(): MailroomError {
  return new MailroomError(
    'NO_TIME_LEFT',
    'The function has too little time left to start the message; another invocation receives it, and no attempt is counted.',
  );
}

/** It must run alone and cannot do so now: visible again after a random delay, so that suspects do not return together. */
export function waitToRunAlone({ delays, delivery: { receives } }: Received): ShownAgain {
  return again(delays.untilAloneMs(receives), madeRoom());
}

/** It makes way for a message that must run alone: visible again immediately, for another invocation. */
export function putBack(): ShownAgain {
  return again(0, madeRoom());
}

/** Fails a message without a claim. @throws the table's error if the message cannot be rejected */
export async function failUnclaimed(received: Received, error: unknown): Promise<MessageOutcome> {
  if (isPoison(error)) return rejectAsPoison(received, error);
  const afterMs = received.delays.retryMs(received.delivery.receives, error);
  return reportFailure(received, { is: failedAs(error), error, afterMs });
}

/** A handler's own choice of the delay is not counted as a failure. */
export function failedAs(error: unknown): MessageEnd['is'] & ('failed' | 'retry-later') {
  return isMailroomError(error, 'RETRY_LATER') ? 'retry-later' : 'failed';
}

async function rejectAsPoison(received: Received, error: unknown): Promise<MessageOutcome> {
  const { message, receives, endsBy } = received.delivery;
  const { eventId, messageId } = message;
  // Read before: if the effects of a rejected message could not be read, nothing would ever report them.
  const row = await received.inbox.read(eventId);
  const refusal = await received.inbox.rejectUnclaimed(message, error);
  const wasRejected = row?.rejectedIds?.has(messageId) ?? false;
  // An operator has settled another message with this body, which is a repeat only once its event can be read.
  if (refusal.status === 'processed' && isUnreadableId(eventId) && !wasRejected)
    return reportFailure(received, { is: 'rejected', error });
  if (refusal.status !== 'rejected') return refused(received, refusal);
  if (!wasRejected) reportEffectsOfUnclaimed(received, row);
  // Without a claim, an earlier failure is unknown; on the first receive there cannot be one.
  if (receives > 1) await writeHint(received, eventId, 'never', endsBy);
  return reportFailure(received, { is: 'rejected', error });
}

/** Another worker, or a final state, prevents work on this message. */
export async function refused(received: Received, refusal: InboxRefusal): Promise<MessageOutcome> {
  switch (refusal.status) {
    case 'processed':
      received.telemetry.count('MessagesDuplicate');
      received.span.set(OUTCOME, 'duplicate' satisfies SpanOutcome);
      return { kind: 'done', duplicate: true };
    case 'rejected':
      return rejected(rejectedEarlier(refusal.reason, refusal.why));
    case 'suspect':
      return waitToRunAlone(received);
    case 'unreadable':
      return reportOutage(
        received,
        unreadableRow(received.config.consumer, received.delivery.message.eventId, refusal.problem),
      );
    case 'leased':
      // Wait once for the rest of the lease. If it is still held after that, its worker is alive: wait until its function stops.
      return reportLeased(received, received.delivery.receives > 1 ? refusal.endsBy : refusal.until);
    case 'too-old':
      return rejectAsPoison(received, poison(TOO_OLD, refusal.why));
  }
}

/** Another worker holds the message, and it waits until a second after a given time. */
export function reportLeased(received: Received, until: number): ShownAgain {
  return reportFailure(received, {
    is: 'leased',
    error: leasedUntil(until),
    afterMs: received.delays.untilMs(until),
  });
}

/** Visible immediately: the row prevents another run of the handler. */
function rejected(error: unknown): ShownAgain {
  return { ...again(0, error), rejected: true };
}

/** The code is that of the rejection, which may be a handler's own. */
function rejectedEarlier(code: string, why: string | undefined): MailroomError {
  const message = 'An earlier receive rejected the message; it becomes a dead letter';
  return explainedBy(
    new MailroomError(code, why === undefined ? `${message}.` : `${message}: ${why}`),
    undefined,
  );
}

function unreadableRow(consumer: string, eventId: string, problem: string): MailroomError {
  const resolve = `npx cdk-mailroom messages resolve ${consumer} ${eventId} --force`;
  return new MailroomError(
    'UNREADABLE_ROW',
    `The inbox row cannot be read, and is not changed: ${problem}. Deploy the version that wrote it. If it was changed by hand, correct the attribute: the message then continues. Only if its work is done, resolve it: \`${resolve}\`.`,
  );
}

function leasedUntil(until: number): MailroomError {
  return new MailroomError(
    'LEASED',
    `Another worker may hold the message until ${timeText(until)}; it is delivered again a second after that.`,
  );
}

function madeRoom(): MailroomError {
  return new MailroomError(
    'PUT_BACK',
    'The message was put back to make room for others in its batch; no attempt is counted.',
  );
}
