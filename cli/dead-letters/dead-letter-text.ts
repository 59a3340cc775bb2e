import { when } from '../frame/listing.ts';
import { clipped, table, time } from '../frame/output.ts';
import type { DeadLetter } from './dead-letters.ts';

/** A dead letter as `--json` shows it. */
export function deadLetterJson(deadLetter: DeadLetter) {
  return {
    id: deadLetter.id,
    eventId: deadLetter.eventId ?? null,
    type: deadLetter.type ?? null,
    sentAt: deadLetter.sentAt ?? null,
    expiresAt: deadLetter.expiresAt ?? null,
    fingerprint: deadLetter.fingerprint ?? null,
    lastError: deadLetter.lastError ?? null,
  };
}

/** A dead letter in a table for people. */
interface DeadLetterLine {
  readonly deadLetter: DeadLetter;
  /** What is to be said of it first. */
  readonly label?: string;
  /** @default its fingerprint */
  readonly cause?: string | undefined;
}

/** A table of dead letters. @param label - the head of the labels, where there are any */
export function deadLetterTable(lines: readonly DeadLetterLine[], now: number, label?: string): string {
  const rows = lines.map(({ deadLetter, label: said, cause = deadLetter.fingerprint ?? '-' }) => {
    const { id, eventId, type, sentAt, expiresAt } = deadLetter;
    return [
      ...(said === undefined ? [] : [said]),
      clipped(id),
      eventId === id ? '' : (eventId ?? '-'),
      clipped(type ?? '-'),
      sentAt === undefined ? '?' : time(sentAt),
      expiresAt === undefined ? 'never' : when(expiresAt, now),
      clipped(cause),
    ];
  });
  const head = ['dead letter', 'event', 'type', 'since', 'deleted', 'cause'];
  return table(label === undefined ? head : [label, ...head], rows);
}
