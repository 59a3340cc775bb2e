import { stripVTControlCharacters } from 'node:util';
import picocolors from 'picocolors';
import type { Io } from './io.ts';

/** Colours for what people read. They are always written, and taken away again where nobody sees them: {@link plain}. */
export const paint = picocolors.createColors(true);

/**
 * A text as it may be shown: without colours under `NO_COLOR`, or where it does not go to a terminal (unless `FORCE_COLOR`
 * asks for them).
 */
export function plain(text: string, io: Pick<Io, 'env'>, isTerminal: boolean): string {
  const { NO_COLOR, FORCE_COLOR } = io.env;
  const coloured = !NO_COLOR && (isTerminal || Boolean(FORCE_COLOR));
  return coloured ? text : stripVTControlCharacters(text);
}
