import { clipped, duration } from '../frame/output.ts';
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

/** When a dead letter is permanently deleted, for people. */
export function expiry({ expiresAt }: DeadLetter, now: number): string {
  if (expiresAt === undefined) return 'never';
  return expiresAt <= now ? 'now' : `in ${duration(expiresAt - now)}`;
}

/** Its id, its event's where that is another, and its type. */
export function nameCells({ id, eventId, type }: DeadLetter): string[] {
  return [clipped(id), eventId === id ? '' : (eventId ?? '-'), clipped(type ?? '-')];
}
