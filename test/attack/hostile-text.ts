/** A control or format character, or a separator of lines: what a terminal acts on. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
export const ACTS = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/u;

/** What {@link hostile} would have a terminal show as lines of the command's own. */
export const FORGED = 'every event is processed by all';

/**
 * A text that attacks the reader's terminal: it sets the title and the clipboard (OSC), moves the cursor, colors,
 * begins its own lines, reverses what follows (bidi) and hides characters.
 *
 * @param name - where it is stored; it is found again by this
 */
export function hostile(name: string): string {
  return (
    `<${name}>\u001b]0;title\u0007\u001b]52;c;cm0gLXJm\u001b\\\u001b[2J\u001b[1A\u001b[32m\n${FORGED}\r\n${FORGED}` +
    '\u2028\u2029\u0085\u009b31m\u202egnp.exe\u2066\u200b\ufeff\u00ad\u{e0041}\t\b\u0000\u007f'
  );
}
