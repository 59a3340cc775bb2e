/** An argument that cannot be read. Commander recognizes it by its code, and names the argument. */
export class InvalidArgument extends Error {
  override readonly name = 'InvalidArgument';
  readonly code = 'commander.invalidArgument';
  readonly exitCode = 1;
}

const UNITS_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** The longest duration: operations are kept for this long, and nothing is kept longer. */
const DURATION_MAX_MS = 400 * UNITS_MS.d;

/** Reads a duration like `90s`, `15m`, `6h`, `7d`, of at most 400 days. @returns milliseconds */
export function durationArgument(text: string): number {
  const [, count = '0', unit] = /^(\d{1,8})(s|m|h|d)$/.exec(text) ?? [];
  const ms = Number(count) * (UNITS_MS[unit as keyof typeof UNITS_MS] ?? 0);
  if (ms > 0 && ms <= DURATION_MAX_MS) return ms;
  throw new InvalidArgument('Expected a whole number with a unit, such as 90s, 15m, 6h or 7d; at most 400d.');
}

/** Reads an option that selects one thing: a second value is refused, because only one of them would count. */
export function onceArgument(text: string, before: string | undefined): string {
  if (before === undefined) return text;
  throw new InvalidArgument(`It was given before, as "${before}". Give it once.`);
}

/** Reads a whole number of at least 1. */
export function countArgument(text: string): number {
  const count = Number(text);
  if (Number.isSafeInteger(count) && count >= 1) return count;
  throw new InvalidArgument('Expected a whole number from 1.');
}

/** Texts that stand for a reason, without spaces and punctuation. */
const PLACEHOLDERS =
  /^(|x+|(a|my|the|your|some|no|insert|enter|add|write)?(reason|why|text|comment|note)(here)?|because|todo|tbd|tba|na|none|notgiven|unknown|placeholder|fillin|fillme|asdf)$/;

/**
 * Reads a reason of 3 to 500 characters, as one line. A placeholder, such as `…` or `<reason>`, is refused: it tells the next
 * reader nothing.
 */
export function reasonArgument(text: string): string {
  const reason = text.trim().replaceAll(/\s+/g, ' ');
  const isPlaceholder = PLACEHOLDERS.test(reason.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, ''));
  if (reason.length >= 3 && reason.length <= 500 && !isPlaceholder) return reason;
  throw new InvalidArgument(
    (isPlaceholder && reason !== '' ? 'It is a placeholder. ' : '') +
      'Write a reason of 3 to 500 characters: why you make this change, such as "the bank is back" or a ticket number. It is ' +
      'stored, and mailroom operations shows it.',
  );
}

/** The help of an argument that names a dead-letter source. */
export const SOURCE_ARGUMENT = 'dead, stream, rule:<consumer> or consumer:<consumer>';
