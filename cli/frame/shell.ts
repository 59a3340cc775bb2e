import { MINUTE_MS } from '../../lambdas/runtime/relay/sweep-minutes.ts';

declare const QUOTED: unique symbol;

/** Words of a command line, each quoted for a POSIX shell where it needs that. Made by {@link shell} only. */
export type ShellText = string & { readonly [QUOTED]: true };

/** Words that mean themselves to every shell. */
const PLAIN = /^[\w.:/@%+=,-]+$/;

/**
 * A command to be pasted: what is interpolated stays one word each, whatever it holds. A list becomes several words.
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

/** A printed command is typed some minutes later, and must still reach back as far. */
const TYPED_WITHIN_MS = 10 * MINUTE_MS;

/** A `--since` that reaches back to an age, in whole hours. */
export function hours(ageMs: number): string {
  return `${Math.ceil((ageMs + TYPED_WITHIN_MS) / (60 * MINUTE_MS))}h`;
}
