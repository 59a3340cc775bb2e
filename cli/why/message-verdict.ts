import { inboxState } from '../../lambdas/runtime/store/inbox-state.ts';
import { type InboxRow, inboxKey } from '../../lambdas/runtime/store/rows.ts';
import { isUnreadable, readable } from '../../lambdas/runtime/store/stored-rows.ts';
import { clipped, duration, many, time } from '../frame/output.ts';
import { hours, type ShellText, shell } from '../frame/shell.ts';
import { unfinishedText } from '../reading/row-text.ts';
import { type MessageCase, messageCase, publishedAtOf } from './message-case.ts';
import { bornAt, type TracedEvent, type TracedMessage } from './trace-reader.ts';
import {
  inTime,
  nameOf,
  type StateText,
  unreadableRow,
  type WhyContext,
  type WhyVerdict,
} from './verdict.ts';

/** What the words of a message are made of. */
interface MessageFacts extends Pick<TracedMessage, 'consumer' | 'deadLetter' | 'queue'> {
  readonly event: TracedEvent;
  /** The event in a text. */
  readonly name: string;
  /** The inbox row; empty where there is none that can be read. */
  readonly row: Partial<InboxRow>;
  /** Why the row cannot be read. */
  readonly problem: string;
  /** Until when a worker may hold it, epoch milliseconds. */
  readonly heldUntil: number;
  readonly context: WhyContext;
}

/** What is to be said of one consumer's message; nothing where its event is not published. */
export function ofMessage(
  event: TracedEvent,
  message: TracedMessage,
  context: WhyContext,
): WhyVerdict | undefined {
  const { row, consumer } = message;
  const found = messageCase(event, message, context.now);
  if (found === undefined) return undefined;
  const state = inboxState(row, context.now);
  const words = WORDS[found]({
    ...message,
    event,
    name: nameOf(event),
    row: readable(row) ?? {},
    problem: isUnreadable(row) ? row.unreadable : '',
    heldUntil: state.is === 'leased' ? state.until : 0,
    context,
  });
  return { eventId: event.eventId, consumer: consumer.name, ...words };
}

const WORDS: Readonly<Record<MessageCase, (facts: MessageFacts) => StateText>> = {
  unreadable: ({ event, name, consumer, problem, context }) =>
    unreadableRow(
      `${consumer.name} has a row of ${name} that`,
      problem,
      inboxKey(consumer.name, event.eventId),
      context,
    ),
  processed: () => ({ state: 'processed', text: '', next: null }),
  discarded: ({ name, consumer, row }) => ({
    state: 'discarded',
    text: `${name} was discarded for ${consumer.name} by ${clipped(row.discardedBy ?? 'an operator')}.`,
    next: null,
  }),
  leased: (facts) => {
    const { name, consumer, row, context } = facts;
    const since = row.claimedAt === undefined ? '' : ` since ${duration(context.now - row.claimedAt)}`;
    const before = row.outOfTime === true || row.unfinished ? ` Before that it ${unfinishedText(row)}.` : '';
    return {
      state: 'processing',
      text: `${consumer.name} is working on ${name}, ${attemptOf(facts)}${since}; its lease holds until ${time(facts.heldUntil)}.${before}`,
      next: null,
    };
  },
  abandoned: (facts) => ({
    state: 'retrying',
    text: abandonedText(facts),
    next: logsOf(facts),
  }),
  'abandoned-late': (facts) => ({ state: 'late', text: abandonedText(facts), next: logsOf(facts) }),
  failed: (facts) => {
    const { consumer, row, context } = facts;
    const { attempts = 0, retryAt } = row;
    const when = retryAt === undefined ? 'when its queue redelivers it' : inTime(retryAt, context.now);
    const left = consumer.maxAttempts - attempts - 1;
    const then = left > 0 ? `${many(left, 'more attempt')} follow${left === 1 ? 's' : ''}, then it` : 'it';
    return {
      state: 'retrying',
      text: `${failedText(facts)} It is tried again ${when}. If that fails too, ${then} is rejected into the dead-letter queue.`,
      next: context.commandLine(shell`messages list --failed --by cause --consumer ${consumer.name}`),
    };
  },
  'failed-late': (facts) => {
    const { consumer, row, context } = facts;
    const ago = duration(context.now - (row.retryAt ?? 0));
    return {
      state: 'late',
      text: `${failedText(facts)} It should have been tried again ${ago} ago: ${consumer.name} does not receive, or its queue has lost it, and ${auditOf(facts)} tells.`,
      next: mappingsOf(facts),
    };
  },
  'rejected-too-old': (facts) =>
    rejected(
      facts,
      'It is older than the inbox remembers, so it may have been processed before.',
      shell`message allow ${facts.consumer.name} ${facts.event.eventId} --reason "why"`,
    ),
  rejected: (facts) => rejected(facts, expiryText(facts), redriveOf(facts)),
  'rejected-moving': (facts) =>
    rejected(
      facts,
      'Its message is on its way to the dead-letter queue.',
      shell`dlq list ${`consumer:${facts.consumer.name}`}`,
    ),
  'rejected-unseen': (facts) =>
    rejected(
      facts,
      'Its dead letter is not among those that are visible: there are more, or another command is reading them.',
      shell`dlq redrive ${`consumer:${facts.consumer.name}`} ${facts.event.eventId.replace(/^unreadable-/, '')}`,
    ),
  'rejected-gone': (facts) =>
    rejected(
      facts,
      'Its dead letter is in no dead-letter queue any more. When its work was done by hand:',
      shell`message resolve ${facts.consumer.name} ${facts.event.eventId} --reason "why"`,
    ),
  'dead-lettered': (facts) => ({
    state: 'dead-lettered',
    text: `${facts.name} was never finished by ${facts.consumer.name}. ${expiryText(facts)}`,
    next: facts.context.commandLine(redriveOf(facts)),
  }),
  undelivered: (facts) => {
    const refusal = facts.deadLetter?.refusal;
    const error = refusal === undefined ? '' : ` (${clipped(refusal)})`;
    return {
      state: 'undelivered',
      text: `${facts.name} could not be put into the queue of ${facts.consumer.name}${error}. ${expiryText(facts)}`,
      next: facts.context.commandLine(redriveOf(facts)),
    };
  },
  unproven: (facts) => {
    const { consumer } = facts;
    const declared = `That consumer was declared, or declared anew, at ${time(consumer.changedAt ?? 0)}: it need not have asked for it then.`;
    return {
      state: 'unproven',
      text: `${publishedText(facts)}, and ${consumer.name} has no row of it. ${declared}`,
      next: `${auditOf(facts)} --earlier`,
    };
  },
  missing: (facts) => ({
    state: 'missing',
    text: `${publishedText(facts)} and has not arrived at ${facts.consumer.name}: it has no row there, and it is in none of its queues.`,
    next: auditOf(facts),
  }),
  waiting: (facts) => ({ state: 'waiting', text: waitingText(facts), next: null }),
  'waiting-late': (facts) => ({
    state: 'late',
    text: `${waitingText(facts)} Either ${facts.consumer.name} receives nothing, or too much waits before it; or these are others, and ${auditOf(facts)} tells.`,
    next: mappingsOf(facts),
  }),
};

function rejected(facts: MessageFacts, text: string, next: ShellText): StateText {
  const { name, consumer, row, context } = facts;
  const said = `${consumer.name} rejected ${name} at ${attemptOf(facts)}, ${clipped(row.reason ?? 'UNKNOWN')}${errorOf(row)}. It is not tried again.`;
  return { state: 'rejected', text: `${said} ${text}`, next: context.commandLine(next) };
}

function failedText(facts: MessageFacts): string {
  return `${facts.consumer.name} failed at ${facts.name}, ${attemptOf(facts)}${errorOf(facts.row)}.`;
}

function abandonedText(facts: MessageFacts): string {
  const { name, consumer, row, context } = facts;
  const lease =
    row.leaseUntil === undefined
      ? 'Its row has no lease.'
      : `Its lease ended ${duration(context.now - row.leaseUntil)} ago.`;
  return `${consumer.name} began ${name}, ${attemptOf(facts)}, and ${unfinishedText(row)}. ${lease} Another worker takes it over when the queue redelivers it.`;
}

function publishedText({ event, name, context }: MessageFacts): string {
  return `${name} was published ${duration(context.now - publishedAtOf(event))} ago`;
}

function waitingText(facts: MessageFacts): string {
  const { waiting = 0, inFlight = 0 } = facts.queue ?? {};
  return `${publishedText(facts)}; ${facts.consumer.name} has not claimed it yet. Its queue has ${waiting} waiting and ${inFlight} in flight.`;
}

function expiryText({ deadLetter, context }: MessageFacts): string {
  return `Its dead letter is in ${deadLetter?.source} and is permanently deleted ${inTime(deadLetter?.expiresAt ?? 0, context.now)}.`;
}

function redriveOf({ deadLetter }: MessageFacts): ShellText {
  return shell`dlq redrive ${deadLetter?.source ?? ''} ${deadLetter?.id ?? ''}`;
}

function attemptOf({ row, consumer }: MessageFacts): string {
  return `attempt ${row.attempts ?? 0} of ${consumer.maxAttempts}`;
}

function errorOf({ lastError }: Partial<InboxRow>): string {
  return lastError === undefined ? '' : `: ${clipped(lastError)}`;
}

function auditOf({ event, context }: MessageFacts): string {
  return context.commandLine(shell`audit --since ${hours(context.now - bornAt(event))}`);
}

/** Shows the function's log. The name of its log group is CloudFormation's, and only the function knows it. */
function logsOf({ consumer, context: { awsLine } }: MessageFacts): string {
  const group = awsLine(
    shell`lambda get-function-configuration --function-name ${consumer.function} --query LoggingConfig.LogGroup --output text`,
  );
  return awsLine(`logs tail "$(${group})" --since 1h` as ShellText); // made of quoted words only
}

/** Shows whether the function is fed from its queue: a mapping must be there, and Enabled. */
function mappingsOf({ consumer, context: { awsLine } }: MessageFacts): string {
  const query = 'EventSourceMappings[].[UUID, State, StateTransitionReason]';
  return awsLine(
    shell`lambda list-event-source-mappings --function-name ${consumer.function} --query ${query} --output text`,
  );
}
