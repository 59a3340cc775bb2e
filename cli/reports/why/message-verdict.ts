import { inboxState } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import { isUnreadable } from '../../../lambdas/runtime/store/stored-rows.ts';
import { clipped } from '../../terminal/output.ts';
import { type ShellText, shell } from '../../terminal/shell.ts';
import { isQueueEmpty, messageCase } from './message-case.ts';
import { causeText, effectsText, type MessageFacts, unclaimedText, WORDS } from './message-words.ts';
import type { TracedEvent, TracedMessage } from './trace-reader.ts';
import { nameOf, unreadableRow, type WhyContext, type WhyVerdict } from './verdict.ts';
import { claimStopped } from './wiring-check.ts';

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
  const facts = { ...message, event, name, row, heldUntil, context };
  const { state: named, text, next } = WORDS[found];
  const said = { ...subject, state: named, text: text(facts) + effectsText(facts) + causeText(facts) };
  const stopped = claimStopped(context, consumer.name, found, !isQueueEmpty(message));
  if (stopped !== undefined) {
    const text = `${unclaimedText(found, facts)}${effectsText(facts)} It cannot be claimed. ${stopped.text}`;
    return { ...said, state: 'late', text, next: stopped.next };
  }
  const skipped = skippedByRedrive(facts);
  if (skipped === undefined) return { ...said, next: next?.(facts) ?? null };
  return { ...said, text: `${said.text} ${skipped.text}`, next: context.commandLine(skipped.next) };
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
  if (verdict !== 'too-old' || row !== undefined) return undefined;
  const text =
    'It is older than the inbox retention, so it may have been processed, and a redrive would leave it. If it was not, do its ' +
    'work by hand, then resolve it:';
  return { text, next: shell`messages resolve ${consumer.name} ${event.eventId}` };
}
