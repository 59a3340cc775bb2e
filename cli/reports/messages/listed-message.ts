import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import type { FailedRow, ProcessingRow, RejectedRow } from '../../../lambdas/runtime/store/rows.ts';
import { nextTime, when } from '../../terminal/listing.ts';
import { clipped, detailedTable } from '../../terminal/output.ts';

/** The cause of a message that its consumer has not claimed. */
export const UNCLAIMED = 'published, unclaimed';

/** A message as in the JSON document of docs/cli.md. */
export type ListedMessage = ReturnType<typeof listed>;

/** The known attributes of a message, from its row or from the pointer that lists it. */
interface MessageContent
  extends Partial<Pick<FailedRow, 'type' | 'attempts' | 'fingerprint' | 'lastError' | 'retryAt'>>,
    Pick<ProcessingRow, 'unfinished' | 'outOfTime'>,
    Pick<RejectedRow, 'reason'> {
  /** When it became so, epoch milliseconds. */
  readonly at?: number | undefined;
}

/** Combines what is known about a message. */
export function listed(
  consumer: ConsumerEntry,
  eventId: string,
  status: 'FAILED' | 'PROCESSING' | 'REJECTED' | 'UNREADABLE' | 'WAITING',
  content: MessageContent,
) {
  return {
    consumer: consumer.name,
    eventId,
    status,
    type: content.type ?? null,
    attempt: content.attempts ?? null,
    maxAttempts: consumer.maxAttempts,
    at: content.at ?? null,
    nextAt: content.retryAt ?? null,
    reason: content.reason ?? null,
    fingerprint: content.fingerprint ?? null,
    lastError: content.lastError ?? null,
    unfinished: content.unfinished ?? null,
    outOfTime: content.outOfTime ?? null,
    expiresAt: null as number | null,
  };
}

/** `2 of 5`; `-` before the first attempt. */
function attemptCell({ attempt, maxAttempts, status }: ListedMessage): string {
  if (attempt === 0 || status === 'WAITING') return '-';
  return attempt !== null && attempt > maxAttempts ? String(attempt) : `${attempt ?? '?'} of ${maxAttempts}`;
}

/** Messages as a table. */
export function messagesText(messages: readonly ListedMessage[], now: number): string {
  if (messages.length === 0) return 'No such messages.';
  return detailedTable(
    ['event', 'attempt', 'when', 'next'],
    messages.map((message) => ({
      cells: [clipped(message.eventId), attemptCell(message), when(message.at, now), nextCell(message, now)],
      details: [
        `${message.consumer}, ${clipped(message.type ?? 'unknown type')}${deletedText(message, now)}`,
        clipped(
          `${message.reason === null ? '' : `${message.reason}: `}${message.lastError ?? causeOf(message)}`,
        ),
      ],
    })),
  );
}

function nextCell({ status, nextAt }: ListedMessage, now: number): string {
  if (status === 'REJECTED') return 'never';
  return status === 'WAITING' ? '-' : nextTime(nextAt, now);
}

/** The cause of a message without an error. */
function causeOf({ status }: ListedMessage): string {
  return status === 'WAITING' ? UNCLAIMED : '?';
}

function deletedText({ status, expiresAt }: ListedMessage, now: number): string {
  return status === 'REJECTED' ? `, any dead letter expires ${when(expiresAt, now)}` : '';
}
