import { when } from '../frame/listing.ts';
import { clipped, detailedTable } from '../frame/output.ts';
import type { DeadLetter } from './dead-letters.ts';

/** A dead letter as in the JSON document of docs/cli.md. */
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

/** A dead letter in a table. */
interface DeadLetterLine {
  readonly deadLetter: DeadLetter;
  /** The first cell: a verdict or an outcome. */
  readonly label?: string;
  /** @default its fingerprint */
  readonly cause?: string | undefined;
}

/** A table of dead letters. @param label - the head of the labels, if there are any */
export function deadLetterTable(lines: readonly DeadLetterLine[], now: number, label?: string): string {
  const rows = lines.map(({ deadLetter, label: said, cause = deadLetter.fingerprint ?? '-' }) => {
    const { id, eventId, type, sentAt, expiresAt } = deadLetter;
    const event = eventId === undefined || eventId === id ? '' : ` ${eventId}`;
    return {
      cells: [
        ...(said === undefined ? [] : [said]),
        clipped(id),
        when(sentAt ?? null, now),
        expiresAt === undefined ? 'never' : when(expiresAt, now),
      ],
      details: [`${clipped(type ?? 'unknown type')}${event}`, clipped(cause)],
    };
  });
  const head = ['dead letter', 'since', 'expires'];
  return detailedTable(label === undefined ? head : [label, ...head], rows);
}
