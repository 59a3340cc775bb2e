import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';

declare const QUOTED: unique symbol;

/** A command line whose words are quoted for a POSIX shell where needed. Only {@link shell} creates it. */
export type ShellText = string & { readonly [QUOTED]: true };

/** Words that need no quotes in any shell. */
const PLAIN = /^[\w.:/@%+=,-]+$/;

/**
 * A command to paste. Each interpolated value is one word, whatever it contains; a list is several words.
 *
 * @example
 * ```ts
 * shell`messages list --consumer ${"it's; rm -rf /"}`; // messages list --consumer 'it'\''s; rm -rf /'
 * ```
 */
export function shell(
  parts: TemplateStringsArray,
  ...values: readonly (string | readonly string[])[]
): ShellText {
  const words = values.map((value) => [value].flat().map(quoted).join(' '));
  const text = parts.map((part, index) => `${part}${words[index] ?? ''}`).join('');
  return text as ShellText;
}

function quoted(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** A printed command is run some minutes later and must still cover the same range. */
const TYPED_WITHIN_MS = 10 * MINUTE_MS;

/** A `--since` in whole hours that covers an age. */
export function hours(ageMs: number): string {
  return `${Math.ceil((ageMs + TYPED_WITHIN_MS) / (60 * MINUTE_MS))}h`;
}
