import { CLOCK_SKEW_MS } from '../../lambdas/runtime/clock.ts';
import { invokedFunction } from '../../lambdas/runtime/operations/directory.ts';
import { isForeignEventId } from '../../lambdas/runtime/store/foreign-id.ts';
import { inboxState } from '../../lambdas/runtime/store/inbox-state.ts';
import type { InboxRow } from '../../lambdas/runtime/store/rows.ts';
import { isUnreadable } from '../../lambdas/runtime/store/stored-rows.ts';
import { clipped, duration, many, minuteAfter, time } from '../frame/output.ts';
import { hours, type ShellText, shell } from '../frame/shell.ts';
import { attemptText, unfinishedText } from '../reading/row-text.ts';
import {
  isQueueEmpty,
  type MessageCase,
  MISSING_AFTER_MS,
  MOVED_MS,
  messageCase,
  publishedAtOf,
} from './message-case.ts';
import { bornAt, type TracedEvent, type TracedMessage } from './trace-reader.ts';
import { asClause, inTime, nameOf, unreadableRow, type WhyContext, type WhyVerdict } from './verdict.ts';
import { claimStopped } from './wiring-check.ts';

/** The facts that a verdict on a message quotes. */
interface MessageFacts extends Pick<TracedMessage, 'consumer' | 'deadLetter' | 'queue'> {
  readonly event: TracedEvent;
  /** The event's type and id. */
  readonly name: string;
  /** The inbox row; empty if it does not exist or cannot be read. */
  readonly row: Partial<InboxRow>;
  /** The end of a worker's lease, epoch milliseconds. */
  readonly heldUntil: number;
  readonly context: WhyContext;
}

/** The verdict on one consumer's message; `undefined` if its event is not published. */
export function ofMessage(
  event: TracedEvent,
  message: TracedMessage,
  context: WhyContext,
): WhyVerdict | undefined {
  const { row, consumer } = message;
  const subject = { eventId: event.eventId, consumer: consumer.name };
  const name = nameOf(event);
  if (isUnreadable(row))
    return { ...subject, ...unreadableRow(`${consumer.name} has a row of ${name} that`, row, context) };
  const found = messageCase(event, message, context.now);
  if (found === undefined) return undefined;
  const state = inboxState(row, context.now);
  const heldUntil = state.is === 'leased' ? state.until : 0;
  const facts = { ...message, event, name, row: row ?? {}, heldUntil, context };
  const { state: named, text, next } = WORDS[found];
  const said = { ...subject, state: named, text: text(facts) + doubtText(facts) };
  const stopped = claimStopped(context, consumer.name, found, !isQueueEmpty(message));
  if (stopped !== undefined) {
    const text = `${unclaimedText(found, facts)}${doubtText(facts)} It cannot be claimed. ${stopped.text}`;
    return { ...said, state: 'late', text, next: stopped.next };
  }
  const skipped = skippedByRedrive(facts);
  if (skipped === undefined) return { ...said, next: next?.(facts) ?? null };
  return { ...said, text: `${said.text} ${skipped.text}`, next: context.commandLine(skipped.next) };
}

/** The state, text and command of a case. */
interface CaseWords {
  readonly state: WhyVerdict['state'];
  readonly text: (facts: MessageFacts) => string;
  /** The command to run first, if there is one. */
  readonly next?: (facts: MessageFacts) => string;
}

const WORDS: Readonly<Record<MessageCase, CaseWords>> = {
  processed: { state: 'processed', text: () => '' },
  discarded: {
    state: 'discarded',
    text: ({ name, consumer, row }) =>
      `${name} was discarded for ${consumer.name} by ${clipped(row.discardedBy ?? 'an operator')}.`,
  },
  leased: { state: 'processing', text: leasedText },
  abandoned: { state: 'retrying', text: abandonedText, next: logsOf },
  'abandoned-late': { state: 'late', text: abandonedText, next: logsOf },
  failed: {
    state: 'retrying',
    text: retryText,
    next: ({ consumer, context }) =>
      context.commandLine(shell`messages list --failed --by cause --consumer ${consumer.name}`),
  },
  'failed-late': {
    state: 'late',
    text: (facts) => {
      const { consumer, row, context } = facts;
      const ago = duration(context.now - (row.retryAt ?? 0));
      const due = `${failedText(facts)} Its next attempt was due ${ago} ago. Either ${consumer.name} does not receive messages, or its queue has lost this one`;
      // The audit does not cover foreign events.
      return isForeignEventId(facts.event.eventId) ? `${due}.` : `${due}: \`${auditOf(facts)}\` shows which.`;
    },
    next: mappingsOf,
  },
  'rejected-too-old': rejected(
    () =>
      'It is older than the inbox retention, so it may already have been processed. If you know that it was not, allow it, then redrive it:',
    ({ consumer, event }) => shell`message allow ${consumer.name} ${event.eventId}`,
  ),
  rejected: rejected(expiryText, redriveCommand),
  'rejected-moving': rejected(
    ({ row }) =>
      'Its message is on its way to the dead-letter queue, or was deleted from it. ' +
      `From ${minuteAfter((row.rejectedAt ?? 0) + MOVED_MS)} on, this can tell:`,
    ({ event }) => shell`why ${event.eventId}`,
  ),
  'rejected-unseen': rejected(
    () =>
      'Its dead letter was not among those received: there are too many, or another command is reading them.',
    ({ consumer, event }) =>
      shell`dlq redrive ${`consumer:${consumer.name}`} ${event.eventId.replace(/^unreadable-/, '')}`,
  ),
  'rejected-gone': rejected(
    () => 'Its dead letter is no longer in a dead-letter queue. If its work was done by hand, resolve it:',
    ({ consumer, event }) => shell`message resolve ${consumer.name} ${event.eventId}`,
  ),
  'dead-lettered': {
    state: 'dead-lettered',
    text: (facts) => `${facts.consumer.name} never finished ${facts.name}. ${expiryText(facts)}`,
    next: (facts) => facts.context.commandLine(redriveCommand(facts)),
  },
  undelivered: {
    state: 'undelivered',
    text: (facts) => {
      const refusal = facts.deadLetter?.refusal;
      const error = refusal === undefined ? '' : ` (${clipped(refusal)})`;
      return `EventBridge could not deliver ${facts.name} to the queue of ${facts.consumer.name}${error}. ${expiryText(facts)}`;
    },
    next: (facts) => facts.context.commandLine(redriveCommand(facts)),
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
      const at = minuteAfter(publishedAtOf(facts.event) + MISSING_AFTER_MS);
      return `${waitingText(facts)} From ${at} on, the audit can tell whether it is lost:`;
    },
    next: auditOf,
  },
  waiting: { state: 'waiting', text: waitingText },
  'waiting-late': {
    state: 'late',
    text: (facts) =>
      `${waitingText(facts)} Either ${facts.consumer.name} does not receive messages, or it is behind, or this message is lost: \`${auditOf(facts)}\` shows which.`,
    next: mappingsOf,
  },
};

function rejected(
  text: (facts: MessageFacts) => string,
  next: (facts: MessageFacts) => ShellText,
): CaseWords {
  return {
    state: 'rejected',
    text: (facts) => {
      const { name, consumer, row } = facts;
      const reason = clipped(row.reason ?? 'UNKNOWN');
      return `${consumer.name} rejected ${name}, ${attemptOf(facts)}, ${reason}${errorOf(row)}. It is not retried. ${text(facts)}`;
    },
    next: (facts) => facts.context.commandLine(next(facts)),
  };
}

function leasedText(facts: MessageFacts): string {
  const { name, consumer, row, context, heldUntil } = facts;
  const since = row.claimedAt === undefined ? '' : `, for ${duration(context.now - row.claimedAt)}`;
  const before =
    row.outOfTime === true || row.unfinished ? ` The previous attempt ${unfinishedText(row)}.` : '';
  return `${consumer.name} is working on ${name}, ${attemptOf(facts)}${since}; its lease ends at ${time(heldUntil)}.${before}`;
}

function retryText(facts: MessageFacts): string {
  const { consumer, row, context } = facts;
  const { attempts = 0, retryAt } = row;
  const when = retryAt === undefined ? 'when its queue redelivers it' : inTime(retryAt, context.now);
  const left = consumer.maxAttempts - attempts - 1;
  const then = left > 0 ? `${many(left, 'more attempt')} remain${left === 1 ? 's' : ''} before it` : 'it';
  return `${failedText(facts)} It is retried ${when}. If that fails too, ${then} is rejected and goes to the dead-letter queue.`;
}

function failedText(facts: MessageFacts): string {
  return `${facts.consumer.name} failed to process ${facts.name}, ${attemptOf(facts)}${errorOf(facts.row)}.`;
}

/** The place of a message that cannot be claimed, without the sentence that it will be. */
function unclaimedText(found: MessageCase, facts: MessageFacts): string {
  if (found === 'not-in-queue') return WORDS[found].text(facts).replace(/:$/, `: \`${auditOf(facts)}\`.`);
  if (found.startsWith('failed')) return failedText(facts);
  return found.startsWith('abandoned') ? unfinishedRunText(facts) : waitingText(facts);
}

function abandonedText(facts: MessageFacts): string {
  return `${unfinishedRunText(facts)} Another worker claims it when the queue redelivers it.`;
}

function unfinishedRunText(facts: MessageFacts): string {
  const { name, consumer, row, context } = facts;
  const lease =
    row.leaseUntil === undefined
      ? 'Its row has no lease.'
      : `Its lease ended ${duration(context.now - row.leaseUntil)} ago.`;
  return `${consumer.name} started ${name}, ${attemptOf(facts)}, and ${unfinishedText(row)}. ${lease}`;
}

function publishedText({ event, name, context }: MessageFacts): string {
  return `${name} was published ${duration(context.now - publishedAtOf(event))} ago`;
}

function waitingText(facts: MessageFacts): string {
  const { waiting = 0, inFlight = 0 } = facts.queue ?? {};
  const held =
    waiting + inFlight === 0
      ? "It is not in its queue, which is empty; SQS's counts lag by about a minute."
      : `Its queue has ${many(waiting, 'message')} waiting and ${inFlight} in flight.`;
  return `${publishedText(facts)}; ${facts.consumer.name} has not claimed it yet. ${held}`;
}

function expiryText({ deadLetter, context }: MessageFacts): string {
  return `Its dead letter is in ${deadLetter?.source} and is permanently deleted ${inTime(deadLetter?.expiresAt ?? 0, context.now)}.`;
}

/** The help for a dead letter that a redrive would leave where it is; `undefined` if it would not, or that is unknown. */
function skippedByRedrive(
  facts: MessageFacts,
): { readonly text: string; readonly next: ShellText } | undefined {
  const { consumer, event, deadLetter, context, row } = facts;
  const { id, verdict, code, message } = context.redrive ?? {};
  if (deadLetter === undefined || id !== deadLetter.id) return undefined;
  if (verdict === 'fails') {
    const refusal = clipped([code, message].filter(Boolean).join(': '));
    const text =
      `The deployed code of ${consumer.name} still refuses it (${refusal}), so a redrive would leave it. Deploy code that reads it, ` +
      'then redrive it. If it is not needed, discard it:';
    return { text, next: shell`dlq discard ${deadLetter.source} ${deadLetter.id}` };
  }
  // Rejected as too old: the words of that case suggest what helps.
  if (verdict !== 'too-old' || row.status !== undefined) return undefined;
  const text =
    'It is older than the inbox retention, so it may have been processed, and a redrive would leave it. If it was not, do its ' +
    'work by hand, then resolve it:';
  return { text, next: shell`message resolve ${consumer.name} ${event.eventId}` };
}

function redriveCommand({ deadLetter }: MessageFacts): ShellText {
  return shell`dlq redrive ${deadLetter?.source ?? ''} ${deadLetter?.id ?? ''}`;
}

/** Names the effects that may have happened although no result is stored: the function that ran them has stopped. */
function doubtText({ event, consumer, row, context }: MessageFacts): string {
  if (row.status === 'PROCESSED' || row.status === 'DISCARDED') return '';
  const inDoubt = Object.entries(row.effects ?? {}).filter(
    ([, { status, endsBy }]) => status === 'IN_PROGRESS' && endsBy + CLOCK_SKEW_MS < context.now,
  );
  return inDoubt
    .map(
      ([name, { startedAt }]) =>
        ` Effect ${clipped(name)} started at ${time(startedAt)} and stored no result, so it may have happened: before you settle ` +
        `this by hand, ask its provider about the idempotency key ${consumer.name}:${event.eventId}:${clipped(name)}. ` +
        'An attempt repeats it under that key.',
    )
    .join('');
}

function attemptOf({ row, consumer }: MessageFacts): string {
  return attemptText(row.attempts ?? 0, consumer.maxAttempts);
}

function errorOf({ lastError }: Partial<InboxRow>): string {
  return lastError === undefined ? '' : `: ${asClause(lastError)}`;
}

function auditOf({ event, context }: MessageFacts): string {
  return context.commandLine(shell`audit --since ${hours(context.now - bornAt(event))}`);
}

/** The command that names the log lines of the functions that handled the event. */
function logsOf({ event, context }: MessageFacts): string {
  return context.commandLine(shell`logs ${event.eventId}`);
}

/** The command that shows the function's event source mapping, which must be Enabled. */
function mappingsOf({ consumer, context: { awsLine } }: MessageFacts): string {
  const query = 'EventSourceMappings[].[UUID, State, StateTransitionReason]';
  return awsLine(
    shell`lambda list-event-source-mappings --function-name ${invokedFunction(consumer.function, consumer.alias)} --query ${query} --output text`,
  );
}
