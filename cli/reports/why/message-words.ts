import { TARGET_REFUSES } from '../../../lambdas/runtime/base/bridge-receipt.ts';
import { STALE } from '../../../lambdas/runtime/inbox/inbox-conditions.ts';
import { atHome } from '../../../lambdas/runtime/operations/bus-consumers.ts';
import { eventIdTime, isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import type { DiscardedRow, InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import { isClosed, refusalCode } from '../../deployment/refusal-code.ts';
import { replacementOf } from '../../deployment/resent-event.ts';
import { limitText, unfinishedText } from '../../deployment/row-text.ts';
import { clipped, many, minuteAfter } from '../../terminal/output.ts';
import { type ShellText, shell } from '../../terminal/shell.ts';
import { duration, time } from '../../terminal/times.ts';
import { inTime, type WhyVerdict } from './event-state.ts';
import { isHeld, type MessageCase, MOVED_MS } from './message-case.ts';
import { auditOf, logsOf, type MessageFacts, mappingsOf, redriveCommand, resendOf } from './message-facts.ts';
import {
  attemptOf,
  errorOf,
  failedText,
  lostText,
  notInQueueText,
  overdueText,
  publishedText,
  queueText,
  unclaimedLateText,
  unfinishedRunText,
  waitingText,
} from './message-places.ts';
import { discardLine } from './order-verdict.ts';

/** The state, text and command of a case. */
interface CaseWords {
  readonly state: WhyVerdict['state'];
  readonly text: (facts: MessageFacts) => string;
  /** The command to run first, if there is one. */
  readonly next?: (facts: MessageFacts) => string;
  /** The possible causes of a late message, a sentence without its full stop. @default unknown */
  readonly mayBe?: (facts: MessageFacts) => string;
}

/** The words of every case. */
export const WORDS: Readonly<Record<MessageCase, CaseWords>> = {
  processed: { state: 'processed', text: () => '' },
  discarded: {
    state: 'discarded',
    text: ({ name, consumer, row, event }) =>
      row?.status === 'DISCARDED' && row.reason === STALE
        ? staleText(consumer.name, name, row, event.eventId)
        : `${name} was discarded for ${consumer.name} by ${discarderText(row)}.`,
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
    text: (facts) => `${failedText(facts)} ${overdueText(facts)}${lostText(facts)}.`,
    next: mappingsOf,
    mayBe: overdueText,
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
    text: notInQueueText,
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
    text: (facts) => `${waitingText(facts)} ${unclaimedLateText(facts)}${lostText(facts)}.`,
    next: mappingsOf,
    mayBe: unclaimedLateText,
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

/** Says that a consumer has discarded a message by itself. */
function staleText(consumer: string, name: string, { discardedAt }: DiscardedRow, eventId: string): string {
  const isKnown = discardedAt !== undefined && isEventId(eventId);
  const waitedFor = isKnown ? ` for ${duration(discardedAt - eventIdTime(eventId))}, longer` : ' for longer';
  return `${consumer} discarded ${name} as stale: it had waited${waitedFor} than its handler takes. No effect that its row records has happened.`;
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

function abandonedText(facts: MessageFacts): string {
  return `${unfinishedRunText(facts)} Another worker claims it when the queue redelivers it.`;
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
