import { inboxState } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import { atHome } from '../../../lambdas/runtime/operations/bus-consumers.ts';
import type { StoredEventRow } from '../../../lambdas/runtime/operations/outbox-rows.ts';
import { isChanged } from '../../../lambdas/runtime/operations/publish-wait.ts';
import type { OutboxRow } from '../../../lambdas/runtime/store/outbox-row.ts';
import { isUnreadable } from '../../../lambdas/runtime/store/stored-rows.ts';
import { effectText, openEffects } from '../../deployment/effects.ts';
import { asClause, clipped, many } from '../../terminal/output.ts';
import { type ShellText, shell } from '../../terminal/shell.ts';
import { duration, time } from '../../terminal/times.ts';
import { tooLarge } from '../dead-letters/redrive-plan.ts';
import { resendLine } from '../dead-letters/remedies.ts';
import { judged, waitCommand, waitGroups, waitText } from '../events/waits.ts';
import { fixLine } from '../findings/findings.ts';
import { capturedVerdict, isCaptured, isUnlisted, UNLISTED } from './captured-words.ts';
import { claimWarned } from './claim-warnings.ts';
import { isInDatabase, queuedVerdict, unqueuedVerdict } from './database-verdict.ts';
import {
  type ContextAt,
  inTime,
  isActionRequired,
  nameOf,
  type StateText,
  unreadableRow,
  type WhyContext,
  type WhyVerdict,
  worstFirst,
} from './event-state.ts';
import { isHeld, isQueueEmpty, messageCase } from './message-case.ts';
import type { MessageFacts } from './message-facts.ts';
import { lateDelay, placeText, unclaimedText } from './message-places.ts';
import { causeText, WORDS } from './message-words.ts';
import {
  blockingVerdict,
  discardLine,
  orderedVerdict,
  SUPERSEDED_TODO,
  supersededVerdict,
} from './order-verdict.ts';
import { processedText } from './processed-text.ts';
import { besideScheduled, isCancelled, scheduledVerdict } from './scheduled-words.ts';
import { sourceVerdict, unprovenAt } from './source-verdict.ts';
import { bornAt, type Trace, type TracedEvent, type TracedMessage } from './trace.ts';
import { unfoundNumbers } from './unfound-numbers.ts';
import { claimStopped, type FlowStop, publishStopped } from './wiring-check.ts';

/** The verdict on a chain of events: the worst of all events and messages. */
export function verdictOf(trace: Trace, contextAt: ContextAt): WhyVerdict {
  const own = contextAt(undefined);
  const { events, unread = [] } = trace;
  const all = events.flatMap((event) => {
    const { eventId } = event;
    const home = contextAt(event.elsewhere);
    const outbox = outboxText(event, home);
    const messages = [
      ...event.messages.flatMap((message) => ofMessage(event, message, contextAt) ?? []),
      ...(event.atSources ?? []).flatMap(
        (message) => sourceVerdict(eventId, nameOf(event), message, own) ?? [],
      ),
    ];
    return outbox === undefined
      ? messages
      : [{ eventId, ...blockingVerdict(outbox, event, home) }, ...messages];
  });
  const [worst, ...others] = all.sort(worstFirst);
  const [first] = events;
  const sent = events.filter((event) => !isCancelled(event));
  if (
    worst === undefined ||
    worst.state === 'processed' ||
    (worst.state === 'cancelled' && sent.length > 0)
  ) {
    const unlisted = own.wiring?.problems.find(({ problem }) => problem === 'no-entry');
    const left = [
      ...(unlisted === undefined ? [] : [`${unlisted.part}: ${unlisted.text}`]),
      ...unread,
      ...events.flatMap(({ atSources = [] }) => atSources.flatMap(unprovenAt)),
      ...(events.some(isUnlisted) ? [UNLISTED] : []),
      ...unfoundNumbers(trace),
    ];
    const cancelled = events.length - sent.length;
    const text = processedText(sent, { cancelled, isWhole: left.length === 0, passedOver: own.passedOver });
    const processed: WhyVerdict = { state: 'processed', eventId: first?.eventId ?? '', text, next: null };
    if (left.length === 0) return processed;
    const next = unlisted === undefined ? null : fixLine(unlisted.fix, own);
    const whole = `${text} That leaves out ${clipped(left.join('; '))}.`;
    return { ...processed, state: 'unproven', text: whole, next };
  }
  if (worst.state === 'scheduled')
    return { ...worst, text: worst.text + besideScheduled(sent.length, others) };
  const also = isActionRequired(worst) ? others.filter(isActionRequired).length : 0;
  if (also === 0) return worst;
  const text = `${worst.text} ${also} more in this chain ${also === 1 ? 'requires' : 'require'} action: --story shows all.`;
  return { ...worst, text };
}

/** The verdict on the outbox row; `undefined` if the event is published, may have been read by change data capture, or is expired. */
function outboxText(event: TracedEvent, context: WhyContext): StateText | undefined {
  const { now, commandLine } = context;
  const { eventId, row } = event;
  const name = nameOf(event);
  if (isUnreadable(row))
    return isInDatabase(row)
      ? unqueuedVerdict(name, eventId, row)
      : unreadableRow(`The outbox row of ${name}`, row, context);
  if (row?.status === 'DISCARDED') {
    const text = `${name} was discarded by ${clipped(row.discardedBy ?? 'an operator')}.`;
    return { state: 'discarded', text, next: null };
  }
  const error = row?.lastError === undefined ? '' : `: ${asClause(row.lastError)}`;
  if (row?.status === 'DEAD') {
    const text = `${name} is DEAD: it could not be published after ${many(row.attempts, 'attempt')}${error}. It is not retried.`;
    const problem = tooLarge(row);
    if (problem !== undefined) {
      const todo = 'Have its producer write a smaller event, then discard this one:';
      return {
        state: 'dead',
        text: `${text} ${problem} ${todo}`,
        next: commandLine(shell`dlq discard dead ${eventId}`),
      };
    }
    return { state: 'dead', text, next: commandLine(shell`dlq redrive dead ${eventId}`) };
  }
  if (row?.status === 'CANCELLED') return scheduledVerdict(name, row, now);
  if (isCaptured(event)) return capturedVerdict(name, event, context);
  return row?.status === 'PENDING' ? pendingText(event, row, context) : undefined;
}

/** The verdict on an event that is not published yet. */
function pendingText(
  event: TracedEvent,
  row: StoredEventRow & OutboxRow,
  context: WhyContext,
): StateText | undefined {
  const { now, commandLine } = context;
  const name = nameOf(event);
  const error = row.lastError === undefined ? '' : `: ${asClause(row.lastError)}`;
  const [wait] = judged([row], context);
  if (wait === undefined) return undefined;
  const { because, isStuck, since } = wait;
  if (because === 'undeclared') {
    const text =
      `${name} waits: no producer of this Mailroom declares its source "${clipped(row.source)}", so the relay does not publish it. ` +
      `Declared sources: ${(context.sources ?? []).map(clipped).join(', ')}. If the event is genuine, declare the source and deploy: the sweep ` +
      'then publishes it. If not, it was forged: see docs/operating.md#events-with-an-undeclared-source.';
    return { state: 'undeclared', text, next: commandLine(shell`why ${event.eventId} --payload`) };
  }
  if (because === 'scheduled') return scheduledVerdict(name, row, now);
  if (isInDatabase(row)) return queuedVerdict(name, wait, row, context);
  const begin = row.requeuedAt !== undefined ? 'requeued' : row.dueAt !== undefined ? 'due' : 'committed';
  const age = now - since;
  // Until its stream lease ends, as its own row has it, the sweep leaves the event alone; after a failure, only the sweep retries it.
  const isNew = because === 'new';
  const isFirstTry = row.lastError === undefined && begin === 'committed';
  const stopped = isChanged(because)
    ? undefined
    : publishStopped(context, isNew ? ['table', 'stream relay'] : isFirstTry ? undefined : ['sweep']);
  if (stopped !== undefined) {
    const place = `${name} is not published yet, ${duration(age)} after ${SINCE[begin]}`;
    const delay = { place: `${place}.`, ...stopped.delay };
    return { state: 'stuck', text: `${place}${error}. ${stopped.text}`, next: stopped.next, delay };
  }
  if (isStuck) {
    // As `status` reports it, with the same remedy.
    const [group] = waitGroups([wait]);
    const command = group && waitCommand(group, now);
    const waits =
      begin === 'due' && because === 'due'
        ? `is overdue: it was due ${duration(age)} ago (${time(bornAt(event))}) and is not published.`
        : `is not published, and is ${group === undefined ? '' : waitText(group, now)}.`;
    const problem = because === 'due' ? 'The sweep should have published it by now.' : null;
    const place = `${name} ${waits}`;
    return {
      state: 'stuck',
      text: problem === null ? place : `${place} ${problem}`,
      next: commandLine(command ?? shell`events list`),
      delay: { ...UNKNOWN_CAUSE, place, problem },
    };
  }
  if (row.lastError === undefined) {
    const waits = `${name} was ${begin} ${duration(age)} ago and is not published yet.`;
    if (isNew) return { state: 'publishing', text: waits, next: null };
    if (begin !== 'committed')
      return { state: 'publishing', text: `${waits} The sweep publishes it within minutes.`, next: null };
    const text = `${waits} The stream relay has not published it; the next sweep should, within two minutes. \`status\` checks both.`;
    return { state: 'publishing', text, next: commandLine(shell`status`) };
  }
  const text =
    `${name} could not be published, ${many(row.attempts, 'attempt')} so far${error}. It is retried ${inTime(row.leaseUntil, now)}, then at growing ` +
    'intervals; when its attempts are exhausted, it becomes DEAD. Failures of the bus do not count as attempts.';
  return { state: 'retrying', text, next: commandLine(shell`status`) };
}

/** A delay of which nothing is known but the place. */
const UNKNOWN_CAUSE = { problem: null, asksFirst: false, before: null };

/** The time from which an event waits to be published. */
const SINCE = { committed: 'its commit', requeued: 'its requeue', due: 'it was due' } as const;

/** The verdict on one consumer's message; `undefined` if its event is not published. */
function ofMessage(event: TracedEvent, message: TracedMessage, contextAt: ContextAt): WhyVerdict | undefined {
  const { row, consumer } = message;
  const context = contextAt(consumer.elsewhere?.table);
  const home = contextAt(event.elsewhere);
  const subject = { eventId: event.eventId, consumer: consumer.name };
  const name = nameOf(event);
  if (isUnreadable(row))
    return { ...subject, ...unreadableRow(`${consumer.name} has a row of ${name} that`, row, context) };
  const superseded = supersededVerdict(name, message, context);
  if (superseded !== undefined) return { ...subject, ...superseded };
  const state = inboxState(row, context.now);
  const found = messageCase(event, message, state, context.now);
  if (found === undefined) return undefined;
  const heldUntil = state.is === 'leased' ? state.until : 0;
  const facts = { ...message, event, name, row, heldUntil, context, home };
  const { state: named, text, next, mayBe } = WORDS[found];
  const [place, cause, effects] = [unclaimedText(found, facts), causeText(facts), effectsText(facts)];
  const delay = named === 'late' ? lateDelay(found, facts, mayBe?.(facts)) : undefined;
  const said = { ...subject, state: named, text: text(facts) + effects + cause, delay };
  const isClaimable = { isQueued: !isQueueEmpty(message), isHeld: isHeld(found, message) };
  const own = { ...message, consumer: atHome(consumer) };
  const warned = claimWarned(context, own.consumer.name, found);
  const stopped = claimStopped(context, own.consumer.name, found, isClaimable);
  const lateBy = ({ text: problem, next: command, delay: by }: FlowStop, before: string): WhyVerdict => ({
    ...{ ...subject, state: 'late', text: `${before} ${problem}`, next: command },
    delay: { place: placeText(found, facts), ...by },
  });
  if (stopped === undefined && warned !== undefined) return lateBy(warned, `${place}${effects}`);
  if (stopped !== undefined) return lateBy(stopped, `${place}${effects} It cannot be claimed.`);
  const skipped = skippedByRedrive(facts);
  const verdict: WhyVerdict =
    skipped === undefined
      ? { ...said, next: next?.(facts) ?? null }
      : { ...said, text: `${said.text} ${skipped.text}`, next: context.commandLine(skipped.next) };
  return orderedVerdict(verdict, { event, message: own, context, place });
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
    return { text, next: discardLine(deadLetter) };
  }
  if (verdict === 'superseded') {
    const text = `${message ?? ''} A redrive would leave it. ${SUPERSEDED_TODO}`.trimStart();
    return { text, next: discardLine(deadLetter) };
  }
  if (verdict === 'stale') {
    const text = `It has waited for longer than its handler takes, so ${consumer.name} would discard it, and a redrive would leave it. If its work is still needed, resend it as a new event:`;
    return { text, next: resendLine(deadLetter.source.name, deadLetter.id) };
  }
  // Rejected as too old: the words of that case suggest what helps.
  if (verdict !== 'too-old' || row !== undefined) return undefined;
  const text =
    'It is older than the inbox retention, so it may have been processed, and a redrive would leave it. If it was not, do its ' +
    'work by hand, then resolve it:';
  return { text, next: shell`messages resolve ${atHome(consumer).name} ${event.eventId}` };
}

/** Names the effects that have happened, or may have, while the work of the message is not done. */
function effectsText({ event, consumer, row, context }: MessageFacts): string {
  const effects = openEffects(event.eventId, atHome(consumer).name, row, context.now);
  if (effects.length === 0) return '';
  const said = effects.map((effect) => ` ${effectText(effect).replace(/^e/, 'E')}.`).join('');
  const inDoubt = effects.some(({ state }) => state !== 'completed');
  const repeated = inDoubt ? ' An attempt repeats what has not completed under the same key.' : '';
  return `${said} Ask its provider before you settle this by hand.${repeated}`;
}
