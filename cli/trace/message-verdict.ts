import type { ConsumerEntry } from '../../lambdas/runtime/operations/directory.ts';
import { MINUTE_MS } from '../../lambdas/runtime/relay/sweep-minutes.ts';
import { TOO_OLD } from '../../lambdas/runtime/store/inbox-conditions.ts';
import { type InboxState, inboxState, isOverdue } from '../../lambdas/runtime/store/inbox-state.ts';
import { type InboxRow, inboxKey } from '../../lambdas/runtime/store/rows.ts';
import { readable } from '../../lambdas/runtime/store/stored-rows.ts';
import { clipped, duration, time } from '../frame/output.ts';
import { type ShellText, shell } from '../frame/shell.ts';
import { unfinishedText } from '../reading/row-text.ts';
import { STUCK_MS } from '../status/status-report.ts';
import { bornAt, type TracedEvent, type TracedMessage } from './trace-reader.ts';
import { hours, inTime, nameOf, ofUnreadable, type Verdict, type VerdictContext } from './verdict.ts';

/** A message that its consumer has not claimed this long after the publish, and that no queue holds, is missing: the audit's grace. */
const MISSING_AFTER_MS = 5 * MINUTE_MS;

/** A message that lies in its queue for longer than this, and was never begun, is late: the alarm's own time. */
const UNCLAIMED_MS = 15 * MINUTE_MS;

/** The letter of a rejected message gets into the dead-letter queue within this. */
const ON_ITS_WAY_MS = 15 * MINUTE_MS;

/** What is to be said of one consumer's message; nothing where its event is not published. */
export function ofMessage(
  event: TracedEvent,
  message: TracedMessage,
  context: VerdictContext,
): Verdict | undefined {
  const { consumer } = message;
  const state = inboxState(message.row, context.now);
  // What is not published is the outbox's affair.
  if (state.is === 'absent' && readable(event.row)?.status !== 'PUBLISHED') return undefined;
  return { eventId: event.eventId, consumer: consumer.name, ...told(event, message, state, context) };
}

type Said = Omit<Verdict, 'eventId' | 'consumer'>;

/** A message with its row. */
type Claimed = TracedMessage & { readonly row: InboxRow };

function told(event: TracedEvent, message: TracedMessage, state: InboxState, context: VerdictContext): Said {
  const { consumer } = message;
  switch (state.is) {
    case 'absent':
      return ofUnclaimed(event, message, context);
    case 'unreadable': {
      const key = inboxKey(consumer.name, event.eventId);
      return ofUnreadable(`${consumer.name} has a row of ${nameOf(event)} that`, state.problem, key, context);
    }
    case 'processed':
      return { state: 'processed', text: '', next: null };
    case 'discarded': {
      const by = clipped(state.row.discardedBy ?? 'an operator');
      const text = `${nameOf(event)} was discarded for ${consumer.name} by ${by}.`;
      return { state: 'discarded', text, next: null };
    }
    case 'rejected':
      return ofRejected(event, { ...message, row: state.row }, context);
    case 'failed':
      return ofFailed(event, { ...message, row: state.row }, context);
    case 'leased':
      return ofLeased(event, { ...message, row: state.row }, state.until, context);
    case 'abandoned':
      return ofAbandoned(event, { ...message, row: state.row }, context);
  }
}

function ofRejected(
  event: TracedEvent,
  { consumer, row, letter, unseen }: Claimed,
  { now, commandLine }: VerdictContext,
): Said {
  const said = `${consumer.name} rejected ${nameOf(event)} at attempt ${row.attempts} of ${consumer.maxAttempts}, ${clipped(row.reason ?? 'UNKNOWN')}${errorOf(row)}. It is not tried again.`;
  if (row.reason === TOO_OLD) {
    const text = `${said} It is older than the inbox remembers, so it may have been processed before.`;
    return {
      state: 'rejected',
      text,
      next: commandLine(shell`message allow ${consumer.name} ${event.eventId} --reason "why"`),
    };
  }
  if (letter !== undefined) {
    const { place } = letter.place;
    const text = `${said} Its letter is in ${place} and is deleted for ever ${inTime(letter.expiresAt, now)}.`;
    return {
      state: 'rejected',
      text,
      next: commandLine(shell`dlq redrive ${place} --letter ${letter.letter.messageId}`),
    };
  }
  if (now - (row.rejectedAt ?? 0) < ON_ITS_WAY_MS) {
    const text = `${said} Its message is on its way to the dead-letter queue.`;
    return { state: 'rejected', text, next: commandLine(shell`dlq list ${`consumer:${consumer.name}`}`) };
  }
  if (unseen) {
    const text = `${said} Its letter is not among those that could be looked at: there are more, or somebody else looks at them.`;
    return {
      state: 'rejected',
      text,
      next: commandLine(
        shell`dlq redrive ${`consumer:${consumer.name}`} --letter ${event.eventId.replace(/^unreadable-/, '')}`,
      ),
    };
  }
  const text = `${said} Its letter is in no dead-letter queue any more. When what it should have done was done by hand:`;
  return {
    state: 'rejected',
    text,
    next: commandLine(shell`message resolve ${consumer.name} ${event.eventId} --reason "why"`),
  };
}

function ofFailed(event: TracedEvent, { consumer, row }: Claimed, context: VerdictContext): Said {
  const { now, commandLine } = context;
  const { attempts, retryAt } = row;
  const said = `${consumer.name} failed at ${nameOf(event)}, attempt ${attempts} of ${consumer.maxAttempts}${errorOf(row)}.`;
  if (retryAt !== undefined && retryAt < now - STUCK_MS) {
    const audit = context.commandLine(shell`audit --since ${hours(now - bornAt(event))}`);
    const text = `${said} It should have been tried again ${duration(now - retryAt)} ago: ${consumer.name} does not receive, or its queue has lost it, and ${audit} tells.`;
    return { state: 'late', text, next: mappingsOf(consumer, context) };
  }
  const when = retryAt === undefined ? 'when its queue shows it again' : inTime(retryAt, now);
  const left = consumer.maxAttempts - attempts;
  const then =
    left > 1
      ? `If that fails too, ${left - 1} more attempt${left === 2 ? '' : 's'} follow${left === 2 ? 's' : ''}, then it is rejected into the dead-letter queue.`
      : 'If that fails too, it is rejected into the dead-letter queue.';
  return {
    state: 'retrying',
    text: `${said} It is tried again ${when}. ${then}`,
    next: commandLine(shell`messages list --failed --by cause --consumer ${consumer.name}`),
  };
}

function ofLeased(
  event: TracedEvent,
  { consumer, row }: Claimed,
  until: number,
  { now }: VerdictContext,
): Said {
  const attempt = `attempt ${row.attempts} of ${consumer.maxAttempts}`;
  const since = row.claimedAt === undefined ? '' : ` since ${duration(now - row.claimedAt)}`;
  const before = row.outOfTime === true || row.unfinished ? ` Before that it ${unfinishedText(row)}.` : '';
  const text = `${consumer.name} is working on ${nameOf(event)}, ${attempt}${since}; its lease holds until ${time(until)}.${before}`;
  return { state: 'processing', text, next: null };
}

function ofAbandoned(event: TracedEvent, { consumer, row }: Claimed, context: VerdictContext): Said {
  const { now } = context;
  const lease =
    row.leaseUntil === undefined
      ? 'Its row has no lease.'
      : `Its lease ended ${duration(now - row.leaseUntil)} ago.`;
  const text =
    `${consumer.name} began ${nameOf(event)}, attempt ${row.attempts} of ${consumer.maxAttempts}, and ${unfinishedText(row)}. ${lease} ` +
    'Another worker takes it over when the queue shows it again.';
  const late = isOverdue(row, now - Math.max(STUCK_MS, ON_ITS_WAY_MS));
  return { state: late ? 'late' : 'retrying', text, next: logsOf(consumer, context) };
}

function errorOf({ lastError }: InboxRow): string {
  return lastError === undefined ? '' : `: ${clipped(lastError)}`;
}

/** No row: it waits, it died on the way, or it never came. */
function ofUnclaimed(event: TracedEvent, message: TracedMessage, context: VerdictContext): Said {
  const { now, commandLine } = context;
  const { consumer, letter, queue } = message;
  const name = nameOf(event);
  if (letter !== undefined) {
    const { place, kind } = letter.place;
    const { ERROR_CODE, ERROR_MESSAGE } = letter.letter.attributes;
    const error = [ERROR_CODE, ERROR_MESSAGE]
      .filter((part) => part !== undefined)
      .map(clipped)
      .join(': ');
    const how =
      kind === 'rule'
        ? `could not be put into the queue of ${consumer.name}`
        : `was never finished by ${consumer.name}`;
    const text = `${name} ${how}${error === '' ? '' : ` (${error})`}. Its letter is in ${place} and is deleted for ever ${inTime(letter.expiresAt, now)}.`;
    return {
      state: kind === 'rule' ? 'undelivered' : 'dead-lettered',
      text,
      next: commandLine(shell`dlq redrive ${place} --letter ${letter.letter.messageId}`),
    };
  }
  const publishedAt = readable(event.row)?.publishedAt ?? bornAt(event);
  const ago = `${name} was published ${duration(now - publishedAt)} ago`;
  const audit = commandLine(shell`audit --since ${hours(now - bornAt(event))}`);
  const { waiting = 0, inFlight = 0 } = queue ?? {};
  const empty = waiting + inFlight === 0;
  const { changedAt = 0 } = consumer;
  if (empty && publishedAt < changedAt) {
    const text =
      `${ago}, and ${consumer.name} has no row of it. That consumer was declared, or declared anew, at ${time(changedAt)}: it need not have ` +
      'asked for it then.';
    return { state: 'unproven', text, next: `${audit} --earlier` };
  }
  if (empty && now - publishedAt > MISSING_AFTER_MS) {
    const text = `${ago} and has not arrived at ${consumer.name}: it has no row there, and it is in none of its queues.`;
    return { state: 'missing', text, next: audit };
  }
  const text = `${ago}; ${consumer.name} has not claimed it yet. Its queue has ${waiting} waiting and ${inFlight} in flight.`;
  if (now - publishedAt <= UNCLAIMED_MS) return { state: 'waiting', text, next: null };
  const late = `${text} Either ${consumer.name} receives nothing, or too much waits before it; or these are others, and ${audit} tells.`;
  return { state: 'late', text: late, next: mappingsOf(consumer, context) };
}

/** Shows the function's log. The name of its log group is CloudFormation's, and only the function knows it. */
function logsOf({ function: name }: ConsumerEntry, { awsLine }: VerdictContext): string {
  const group = awsLine(
    shell`lambda get-function-configuration --function-name ${name} --query LoggingConfig.LogGroup --output text`,
  );
  return awsLine(`logs tail "$(${group})" --since 1h` as ShellText); // made of quoted words only
}

/** Shows whether the function is fed from its queue: a mapping must be there, and Enabled. */
function mappingsOf({ function: name }: ConsumerEntry, { awsLine }: VerdictContext): string {
  const query = 'EventSourceMappings[].[UUID, State, StateTransitionReason]';
  return awsLine(
    shell`lambda list-event-source-mappings --function-name ${name} --query ${query} --output text`,
  );
}
