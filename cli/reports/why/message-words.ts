import { TARGET_REFUSES } from '../../../lambdas/runtime/base/bridge-receipt.ts';
import { DELIVERY_GRACE_MS } from '../../../lambdas/runtime/base/patience.ts';
import { atHome } from '../../../lambdas/runtime/operations/bus-consumers.ts';
import { isExternalEventId } from '../../../lambdas/runtime/store/external-id.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import { isClosed, refusalCode } from '../../deployment/refusal-code.ts';
import { replacementOf } from '../../deployment/resent-event.ts';
import { attemptText, limitText, unfinishedText } from '../../deployment/row-text.ts';
import { asClause, clipped, many, minuteAfter } from '../../terminal/output.ts';
import { type ShellText, shell } from '../../terminal/shell.ts';
import { duration, time } from '../../terminal/times.ts';
import { inTime, type WhyVerdict } from './event-state.ts';
import { isHeld, type MessageCase, MOVED_MS, publishedAtOf } from './message-case.ts';
import { auditOf, logsOf, type MessageFacts, mappingsOf, redriveCommand, resendOf } from './message-facts.ts';
import { discardLine } from './order-verdict.ts';

/** The state, text and command of a case. */
interface CaseWords {
  readonly state: WhyVerdict['state'];
  readonly text: (facts: MessageFacts) => string;
  /** The command to run first, if there is one. */
  readonly next?: (facts: MessageFacts) => string;
}

/** The words of every case. */
export const WORDS: Readonly<Record<MessageCase, CaseWords>> = {
  processed: { state: 'processed', text: () => '' },
  discarded: {
    state: 'discarded',
    text: ({ name, consumer, row }) => `${name} was discarded for ${consumer.name} by ${discarderText(row)}.`,
  },
  leased: { state: 'processing', text: leasedText },
  abandoned: { state: 'retrying', text: abandonedText, next: logsOf },
  'abandoned-late': { state: 'late', text: abandonedText, next: logsOf },
  failed: {
    state: 'retrying',
    text: retryText,
    next: ({ consumer, context }) =>
      context.commandLine(shell`messages list --failed --by cause --consumer ${atHome(consumer).name}`),
  },
  'failed-late': {
    state: 'late',
    text: (facts) => {
      const { consumer, row, context } = facts;
      const { retryAt = 0 } = row?.status === 'FAILED' ? row : {};
      const ago = duration(context.now - retryAt);
      const due = `${failedText(facts)} Its next attempt was due ${ago} ago. Either ${consumer.name} does not receive messages, or its queue has lost this one`;
      // The audit does not cover external events.
      return isExternalEventId(facts.event.eventId)
        ? `${due}.`
        : `${due}: \`${auditOf(facts)}\` shows which.`;
    },
    next: mappingsOf,
  },
  'rejected-too-old': rejected(
    () =>
      'It is older than the inbox retention, so it may already have been processed. If you know that it was not, allow it, then redrive it:',
    ({ consumer, event }) => shell`messages allow ${atHome(consumer).name} ${event.eventId}`,
  ),
  rejected: rejected((facts) => `${expiryText(facts)}${refusedText(facts)}`, redriveCommand),
  'rejected-moving': rejected(
    ({ row }) => {
      const { rejectedAt = 0 } = row?.status === 'REJECTED' ? row : {};
      return (
        'Its message is on its way to the dead-letter queue, or was deleted from it. ' +
        `After ${minuteAfter(rejectedAt + MOVED_MS)}, this command can tell:`
      );
    },
    ({ event }) => shell`why ${event.eventId}`,
  ),
  'rejected-unseen': rejected(
    () =>
      'Its dead letter was not among those received: there are too many, or another command is reading them.',
    ({ consumer, event }) => shell`dlq redrive ${`consumer:${atHome(consumer).name}`} ${event.eventId}`,
  ),
  'rejected-gone': rejected(
    (facts) =>
      `Its dead letter is no longer in a dead-letter queue. ${isHeld('rejected-gone', facts) ? 'It may have been redriven, and wait in its queue, which is not empty. Only if' : 'If'} its work was done by hand, resolve it:`,
    ({ consumer, event }) => shell`messages resolve ${atHome(consumer).name} ${event.eventId}`,
  ),
  'row-deleted': {
    state: 'rejected',
    text: ({ name, consumer }) =>
      `${consumer.name} rejected ${name}, and its inbox row was deleted by hand. Which side effects have happened is unknown, and a redrive ` +
      'would repeat them. Ask their providers, finish the work by hand where needed, then resolve it:',
    next: ({ consumer, event, context }) =>
      context.commandLine(shell`messages resolve ${atHome(consumer).name} ${event.eventId}`),
  },
  'dead-lettered': {
    state: 'dead-lettered',
    text: (facts) => {
      const { consumer, name, context, deadLetter } = facts;
      const { receives } = deadLetter?.received ?? {};
      const times = receives === undefined ? '' : ` about ${many(receives, 'time')}`;
      const logs = context.commandLine(shell`logs ${atHome(consumer).name}`);
      return `${name} was received${times} and never claimed by ${consumer.name}: does its function start, and reach its table? Its log: \`${logs}\`. ${expiryText(facts)}`;
    },
    next: (facts) => facts.context.commandLine(redriveCommand(facts)),
  },
  undelivered: {
    state: 'undelivered',
    text: (facts) => {
      const refusal = facts.deadLetter?.refusal;
      const error = refusal === undefined ? '' : ` (${clipped(refusal)})`;
      const redrive = facts.context.commandLine(redriveCommand(facts));
      const first = isRefused(facts)
        ? ` \`doctor\` compares the queue and its policy with the stack. Once EventBridge may send to it again, redrive: \`${redrive}\`.`
        : '';
      return `EventBridge could not deliver ${facts.name} to the queue of ${facts.consumer.name}${error}. ${expiryText(facts)}${first}`;
    },
    next: (facts) => facts.context.commandLine(isRefused(facts) ? shell`doctor` : redriveCommand(facts)),
  },
  unproven: {
    state: 'unproven',
    text: (facts) =>
      `${publishedText(facts)}, and ${facts.consumer.name} has no row of it. The declaration of ${facts.consumer.name} changed later, ` +
      `at ${time(facts.consumer.changedAt ?? 0)}, so the event may not have been meant for it.`,
    next: (facts) => `${auditOf(facts)} --earlier`,
  },
  missing: {
    state: 'missing',
    text: (facts) =>
      `${publishedText(facts)} but never reached ${facts.consumer.name}: it is in no queue, and ${facts.consumer.name} has no row of it.`,
    next: auditOf,
  },
  'not-in-queue': {
    state: 'unproven',
    text: (facts) => {
      const at = minuteAfter(publishedAtOf(facts.event) + DELIVERY_GRACE_MS);
      return `${waitingText(facts)} From ${at} on, the audit can tell whether it is lost:`;
    },
    next: auditOf,
  },
  'resend-missing': {
    state: 'missing',
    text: (facts) => {
      const { event, consumer } = facts;
      const { by = 'An operator', at = 0, causationId } = event.resent ?? {};
      return (
        `${clipped(by)} began to send ${event.eventId} to ${consumer.name} at ${time(at)}, in place of ${causationId}, but ${consumer.name} has no ` +
        `row of it. ${queueText(facts)} Repeat the resend with the same data, or with other data:`
      );
    },
    next: resendOf,
  },
  waiting: { state: 'waiting', text: waitingText },
  'waiting-late': {
    state: 'late',
    text: (facts) =>
      `${waitingText(facts)} Either ${facts.consumer.name} does not receive messages, or it is behind, or this message is lost: ${lostText(facts)}.`,
    next: mappingsOf,
  },
};

/** True for the dead letter of a queue to which EventBridge may not send. */
function isRefused({ deadLetter }: MessageFacts): boolean {
  return isClosed(refusalCode(deadLetter?.received));
}

/** Names the event that this one replaces. */
export function causeText({ event: { resent }, row }: MessageFacts): string {
  if (resent === undefined || row === undefined || row.status === 'PROCESSED') return '';
  return ` An operator sent it in place of ${resent.causationId}.`;
}

/** Names the operator who discarded a message, and the event that runs in its place. */
function discarderText(row: InboxRow | undefined): string {
  const { discardedBy = 'an operator' } = row?.status === 'DISCARDED' ? row : {};
  const replacement = replacementOf(row);
  return `${clipped(discardedBy)}${replacement === undefined ? '' : `, who sent it again with other data as ${replacement}`}`;
}

function rejected(
  text: (facts: MessageFacts) => string,
  next: (facts: MessageFacts) => ShellText,
): CaseWords {
  return {
    state: 'rejected',
    text: (facts) => {
      const { name, consumer, row } = facts;
      const { reason = 'UNKNOWN' } = row?.status === 'REJECTED' ? row : {};
      return `${consumer.name} rejected ${name}, ${attemptOf(facts)}, ${clipped(reason)}${errorOf(row)}. It is not retried. ${text(facts)}`;
    },
    next: (facts) => facts.context.commandLine(next(facts)),
  };
}

function leasedText(facts: MessageFacts): string {
  const { name, consumer, row, context, heldUntil } = facts;
  const { claimedAt, outOfTime, unfinished } = row?.status === 'PROCESSING' ? row : {};
  const since = claimedAt === undefined ? '' : `, for ${duration(context.now - claimedAt)}`;
  const before =
    outOfTime === true || unfinished
      ? ` The previous attempt ${unfinishedText({ outOfTime, unfinished })}.`
      : '';
  return `${consumer.name} is working on ${name}, ${attemptOf(facts)}${since}; its lease ends at ${time(heldUntil)}.${before}`;
}

function retryText(facts: MessageFacts): string {
  const { consumer, row, context } = facts;
  const { attempts = 0, retryAt } = row?.status === 'FAILED' ? row : {};
  if (limitText(row) !== undefined) {
    const slot = retryAt === undefined ? 'when its queue redelivers it' : inTime(retryAt, context.now);
    return `${failedText(facts)} Its slot is ${slot}.`;
  }
  const when = retryAt === undefined ? 'when its queue redelivers it' : inTime(retryAt, context.now);
  const left = consumer.maxAttempts - attempts - 1;
  const then = left > 0 ? `${many(left, 'more attempt')} remain${left === 1 ? 's' : ''} before it` : 'it';
  return `${failedText(facts)} It is retried ${when}. If that fails too, ${then} is rejected and goes to the dead-letter queue.`;
}

function failedText(facts: MessageFacts): string {
  const limit = limitText(facts.row);
  if (limit !== undefined)
    return `${facts.consumer.name} has not started ${facts.name}: it waits for ${limit}, and no attempt is counted.`;
  return `${facts.consumer.name} failed to process ${facts.name}, ${attemptOf(facts)}${errorOf(facts.row)}.`;
}

/** The place of a message that cannot be claimed, without the sentence that it will be. */
export function unclaimedText(found: MessageCase, facts: MessageFacts): string {
  if (found === 'not-in-queue') return WORDS[found].text(facts).replace(/:$/, `: \`${auditOf(facts)}\`.`);
  if (found.startsWith('failed')) return failedText(facts);
  if (found.startsWith('rejected')) return heldText(facts);
  return found.startsWith('abandoned') ? unfinishedRunText(facts) : waitingText(facts);
}

function heldText({ name, consumer, queue }: MessageFacts): string {
  const { waiting = 0, inFlight = 0 } = queue ?? {};
  return `${consumer.name} rejected ${name}, which has no dead letter: it may be in its queue, which has ${waiting} waiting and ${inFlight} in flight, until it is moved or, after a redrive, runs again.`;
}

function abandonedText(facts: MessageFacts): string {
  return `${unfinishedRunText(facts)} Another worker claims it when the queue redelivers it.`;
}

function unfinishedRunText(facts: MessageFacts): string {
  const { name, consumer, row, context } = facts;
  const { leaseUntil, ...held } = row?.status === 'PROCESSING' ? row : {};
  const lease =
    leaseUntil === undefined
      ? 'Its row has no lease.'
      : `Its lease ended ${duration(context.now - leaseUntil)} ago.`;
  return `${consumer.name} started ${name}, ${attemptOf(facts)}, and ${unfinishedText(held)}. ${lease}`;
}

function publishedText({ event, name, context }: MessageFacts): string {
  const was = event.resent === undefined ? 'published' : 'sent by an operator';
  return `${name} was ${was} ${duration(context.now - publishedAtOf(event))} ago`;
}

function waitingText(facts: MessageFacts): string {
  return `${publishedText(facts)}; ${facts.consumer.name} has not claimed it yet. ${queueText(facts)}`;
}

function queueText({ queue }: MessageFacts): string {
  const { waiting = 0, inFlight = 0 } = queue ?? {};
  return waiting + inFlight === 0
    ? "It is not in its queue, which is empty; SQS's counts lag by about a minute."
    : `Its queue has ${many(waiting, 'message')} waiting and ${inFlight} in flight.`;
}

function expiryText({ deadLetter, context }: MessageFacts): string {
  return `Its dead letter is in ${deadLetter?.source.name} and is permanently deleted ${inTime(deadLetter?.expiresAt ?? 0, context.now)}.`;
}

/** A target refuses the event again, unless it has changed. */
function refusedText({ row, deadLetter, context }: MessageFacts): string {
  if (deadLetter === undefined || row?.status !== 'REJECTED' || row.reason !== TARGET_REFUSES) return '';
  const discard = context.commandLine(discardLine(deadLetter));
  return ` The target refuses it again until the target changes. If it never will take it, send its change by hand, then \`${discard}\`. Once it takes it:`;
}

function attemptOf({ row, consumer }: MessageFacts): string {
  return attemptText(row?.attempts ?? 0, consumer.maxAttempts);
}

function errorOf(row: InboxRow | undefined): string {
  return row?.lastError === undefined ? '' : `: ${asClause(row.lastError)}`;
}

/** The command for an unclaimed message that may be lost: the audit does not cover the event of a resend. */
function lostText(facts: MessageFacts): string {
  if (facts.event.resent === undefined) return `\`${auditOf(facts)}\` shows which`;
  return `repeating the resend is safe, \`${resendOf(facts)}\``;
}
