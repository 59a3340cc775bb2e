import { stripVTControlCharacters } from 'node:util';
import picocolors from 'picocolors';
import { escaped } from './escaped.ts';
import type { Io } from './io.ts';

/** Colors. Texts always contain them; {@link plain} removes them where they are not wanted. */
export const paint = picocolors.createColors(true);

/** The color codes of {@link paint} and line ends: the only control characters that the command prints. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it finds the colors
const OWN = /(\u001b\[\d{1,2}m|\n)/;

/**
 * A text that is safe to print: every control character except line ends and colors is escaped. Colors are removed with
 * `NO_COLOR`, and outside a terminal unless `FORCE_COLOR` is set.
 */
export function plain(text: string, io: Pick<Io, 'env'>, isTerminal: boolean): string {
  const { NO_COLOR, FORCE_COLOR } = io.env;
  const colored = !NO_COLOR && (isTerminal || Boolean(FORCE_COLOR));
  const safe = text
    .split(OWN)
    .map((part, index) => (index % 2 === 1 ? part : escaped(part)))
    .join('');
  return colored ? safe : stripVTControlCharacters(safe);
}
