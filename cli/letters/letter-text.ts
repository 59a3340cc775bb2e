import { clipped, duration } from '../frame/output.ts';
import type { DeadItem } from './letters.ts';

/** A letter as `--json` shows it. */
export function letterJson(letter: DeadItem) {
  return {
    id: letter.id,
    eventId: letter.eventId ?? null,
    type: letter.type ?? null,
    sentAt: letter.sentAt ?? null,
    expiresAt: letter.expiresAt ?? null,
    fingerprint: letter.fingerprint ?? null,
  };
}

/** When a letter is deleted for ever, for people. */
export function expiry({ expiresAt }: DeadItem, now: number): string {
  if (expiresAt === undefined) return 'never';
  return expiresAt <= now ? 'now' : `in ${duration(expiresAt - now)}`;
}

/** Its id, its event's where that is another, and its type. */
export function nameCells({ id, eventId, type }: DeadItem): string[] {
  return [clipped(id), eventId === id ? '' : (eventId ?? '-'), clipped(type ?? '-')];
}
