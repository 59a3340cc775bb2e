import { DELIVERY_GRACE_MS } from '../../../lambdas/runtime/base/patience.ts';
import { isExternalEventId } from '../../../lambdas/runtime/store/external-id.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import { attemptText, limitText, unfinishedText } from '../../deployment/row-text.ts';
import { asClause, many, minuteAfter } from '../../terminal/output.ts';
import { duration } from '../../terminal/times.ts';
import type { Delay } from './event-state.ts';
import { type MessageCase, publishedAtOf } from './message-case.ts';
import { auditOf, type MessageFacts, resendOf } from './message-facts.ts';

/** The place of a message that cannot be claimed, without the sentence that it will be. */
export function unclaimedText(found: MessageCase, facts: MessageFacts): string {
  if (found === 'not-in-queue') return `${notInQueueText(facts)} \`${auditOf(facts)}\`.`;
  if (found.startsWith('failed')) return failedText(facts);
  if (found.startsWith('rejected')) return heldText(facts);
  return found.startsWith('abandoned') ? unfinishedRunText(facts) : waitingText(facts);
}

/** The place of a message in a sentence. Its error and the commands are not part of it. */
export function placeText(found: MessageCase, facts: MessageFacts): string {
  if (found === 'not-in-queue') return waitingText(facts);
  if (!found.startsWith('failed') || limitText(facts.row) !== undefined) return unclaimedText(found, facts);
  return `${failedAttemptText(facts)}.`;
}

/** The place of a message that is in no queue, too recently to be called lost, before a command. */
export function notInQueueText(facts: MessageFacts): string {
  const at = minuteAfter(publishedAtOf(facts.event) + DELIVERY_GRACE_MS);
  return `${waitingText(facts)} From ${at} on, the audit can tell whether it is lost:`;
}

/** The possible causes of an overdue attempt: a sentence without its full stop. */
export function overdueText({ consumer, row, context }: MessageFacts): string {
  const { retryAt = 0 } = row?.status === 'FAILED' ? row : {};
  return `Its next attempt was due ${duration(context.now - retryAt)} ago. Either ${consumer.name} does not receive messages, or its queue has lost this one`;
}

/** The possible causes for which a message was not claimed in time: a sentence without its full stop. */
export function unclaimedLateText({ consumer }: MessageFacts): string {
  return `Either ${consumer.name} does not receive messages, or it is behind, or this message is lost`;
}

/** A late message as a delay. @param mayBe - see `CaseWords` */
export function lateDelay(found: MessageCase, facts: MessageFacts, mayBe: string | undefined): Delay {
  return {
    place: placeText(found, facts),
    problem: mayBe === undefined ? null : `${mayBe}.`,
    asksFirst: false,
    before: mayBe === undefined ? null : lostCommand(facts),
  };
}

/** The end of a sentence about a late message: the command for one that may be lost. */
export function lostText(facts: MessageFacts): string {
  const command = lostCommand(facts);
  if (command === null) return '';
  const isResent = facts.event.resent !== undefined;
  return isResent ? `: repeating the resend is safe, \`${command}\`` : `: \`${command}\` shows which`;
}

/** The command for a message that may be lost. The audit covers neither an external event nor that of a resend, which is repeated. */
function lostCommand(facts: MessageFacts): string | null {
  if (facts.event.resent !== undefined) return resendOf(facts);
  return isExternalEventId(facts.event.eventId) ? null : auditOf(facts);
}

/** A failed attempt and its error; a message without a slot has not been tried. */
export function failedText(facts: MessageFacts): string {
  const limit = limitText(facts.row);
  if (limit !== undefined)
    return `${facts.consumer.name} has not started ${facts.name}: it waits for ${limit}, and no attempt is counted.`;
  return `${failedAttemptText(facts)}${errorOf(facts.row)}.`;
}

function failedAttemptText(facts: MessageFacts): string {
  return `${facts.consumer.name} failed to process ${facts.name}, ${attemptOf(facts)}`;
}

function heldText({ name, consumer, queue }: MessageFacts): string {
  const { waiting = 0, inFlight = 0 } = queue ?? {};
  return `${consumer.name} rejected ${name}, which has no dead letter: it may be in its queue, which has ${waiting} waiting and ${inFlight} in flight, until it is moved or, after a redrive, runs again.`;
}

/** An attempt that ended without a result. */
export function unfinishedRunText(facts: MessageFacts): string {
  const { name, consumer, row, context } = facts;
  const { leaseUntil, ...held } = row?.status === 'PROCESSING' ? row : {};
  const lease =
    leaseUntil === undefined
      ? 'Its row has no lease.'
      : `Its lease ended ${duration(context.now - leaseUntil)} ago.`;
  return `${consumer.name} started ${name}, ${attemptOf(facts)}, and ${unfinishedText(held)}. ${lease}`;
}

/** The beginning of a sentence: since when it is published. */
export function publishedText({ event, name, context }: MessageFacts): string {
  const was = event.resent === undefined ? 'published' : 'sent by an operator';
  return `${name} was ${was} ${duration(context.now - publishedAtOf(event))} ago`;
}

/** A message that no worker has claimed. */
export function waitingText(facts: MessageFacts): string {
  return `${publishedText(facts)}; ${facts.consumer.name} has not claimed it yet. ${queueText(facts)}`;
}

/** The messages in the queue of its consumer. */
export function queueText({ queue }: MessageFacts): string {
  const { waiting = 0, inFlight = 0 } = queue ?? {};
  return waiting + inFlight === 0
    ? "It is not in its queue, which is empty; SQS's counts lag by about a minute."
    : `Its queue has ${many(waiting, 'message')} waiting and ${inFlight} in flight.`;
}

/** E.g. `attempt 2 of 5`. */
export function attemptOf({ row, consumer }: MessageFacts): string {
  return attemptText(row?.attempts ?? 0, consumer.maxAttempts);
}

/** The last error as the end of a sentence. */
export function errorOf(row: InboxRow | undefined): string {
  return row?.lastError === undefined ? '' : `: ${asClause(row.lastError)}`;
}
