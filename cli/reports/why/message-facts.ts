import { invokedFunction } from '../../../lambdas/runtime/operations/directory.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import { hours, type ShellText, shell } from '../../terminal/shell.ts';
import { resendLine } from '../dead-letters/remedies.ts';
import type { WhyContext } from './event-state.ts';
import { bornAt, type TracedEvent, type TracedMessage } from './trace.ts';

/** The facts that a verdict on a message quotes. */
export interface MessageFacts extends Pick<TracedMessage, 'consumer' | 'deadLetter' | 'queue'> {
  readonly event: TracedEvent;
  /** The event's type and id. */
  readonly name: string;
  /** The inbox row; absent if it does not exist or cannot be read. */
  readonly row: InboxRow | undefined;
  /** The end of a worker's lease, epoch milliseconds. */
  readonly heldUntil: number;
  /** Of the consumer's Mailroom. */
  readonly context: WhyContext;
  /** Of the Mailroom that published the event. */
  readonly home: WhyContext;
}

/** The command that redrives its dead letter. */
export function redriveCommand({ deadLetter }: MessageFacts): ShellText {
  return shell`dlq redrive ${deadLetter?.source.name ?? ''} ${deadLetter?.id ?? ''}`;
}

/** The command that repeats a resend. */
export function resendOf({ event: { resent }, context }: MessageFacts): string {
  return context.commandLine(resendLine(resent?.source ?? '', resent?.causationId ?? ''));
}

/** The command that audits the events since this one. */
export function auditOf({ event, home }: MessageFacts): string {
  return home.commandLine(shell`audit --since ${hours(home.now - bornAt(event))}`);
}

/** The command that names the log lines of the functions that handled the event. */
export function logsOf({ event, context }: MessageFacts): string {
  return context.commandLine(shell`logs ${event.eventId}`);
}

/** The command that shows the function's event source mapping, which must be Enabled. */
export function mappingsOf({ consumer, context: { awsLine } }: MessageFacts): string {
  const query = 'EventSourceMappings[].[UUID, State, StateTransitionReason]';
  return awsLine(
    shell`lambda list-event-source-mappings --function-name ${invokedFunction(consumer.function, consumer.alias)} --query ${query} --output text`,
  );
}
