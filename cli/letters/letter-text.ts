import { duration, printable } from '../frame/output.ts';
import type { DeadLetter } from './letters.ts';

/** A letter as `--json` shows it. */
export function letterJson(letter: DeadLetter) {
  return {
    letter: letter.letter,
    eventId: letter.eventId ?? null,
    type: letter.type ?? null,
    sentAt: letter.sentAt,
    expiresAt: letter.expiresAt ?? null,
    cause: letter.cause ?? null,
  };
}

/** When a letter is deleted for ever, for people. */
export function expiry({ expiresAt }: DeadLetter, now: number): string {
  if (expiresAt === undefined) return 'never';
  return expiresAt <= now ? 'now' : `in ${duration(expiresAt - now)}`;
}

/** Its id, its event's where that is another, and its type. */
export function nameCells({ letter, eventId, type }: DeadLetter): string[] {
  return [letter, eventId === letter ? '' : (eventId ?? '-'), printable(type ?? '-')];
}
