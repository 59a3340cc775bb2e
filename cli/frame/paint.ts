import { stripVTControlCharacters } from 'node:util';
import picocolors from 'picocolors';
import { escaped } from './escaped.ts';
import type { Io } from './io.ts';

/** Colours for what people read. They are always written, and taken away again where nobody sees them: {@link plain}. */
export const paint = picocolors.createColors(true);

/** The codes that {@link paint} writes, and the ends of lines: all that the command itself sends to a terminal in a text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it finds the colours
const OWN = /(\u001b\[\d{1,2}m|\n)/;

/**
 * A text as it may be shown: every control character but line ends and colours is escaped, and it is without colours under `NO_COLOR`, or where it does not go to a terminal (unless `FORCE_COLOR`
 * asks for them).
 */
export function plain(text: string, io: Pick<Io, 'env'>, isTerminal: boolean): string {
  const { NO_COLOR, FORCE_COLOR } = io.env;
  const coloured = !NO_COLOR && (isTerminal || Boolean(FORCE_COLOR));
  const safe = text
    .split(OWN)
    .map((part, index) => (index % 2 === 1 ? part : escaped(part)))
    .join('');
  return coloured ? safe : stripVTControlCharacters(safe);
}
