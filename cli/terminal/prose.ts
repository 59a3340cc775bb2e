import { stripVTControlCharacters } from 'node:util';

/** The width of everything that the command lays out itself: help, prose and tables. */
export const COLUMNS = 80;

/** Words with the spaces before them. Text in backticks is one word, so a command can be copied from one line. */
const WORD = /\s*(?:`[^`]*`[^\s`]*|\S+)/g;

/**
 * Breaks prose into lines. A word that is longer than a line, such as an ARN, stays whole.
 *
 * Later lines are indented, so that no stored text in the prose can pass for a line of the command.
 *
 * @param indent - spaces before every line but the first
 * @param columns - the most columns of a line
 * @example
 * ```ts
 * prose('  • one problem, described in a long sentence', 4);
 * ```
 */
export function prose(text: string, indent = 2, columns = COLUMNS): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.match(WORD) ?? []) {
    if (line !== '' && columnsOf(line + word) > columns) {
      lines.push(line);
      line = ' '.repeat(indent) + word.trimStart();
    } else line += word;
  }
  return [...lines, line].join('\n');
}

/** The columns that a line takes on a terminal: its characters without colors. */
export function columnsOf(line: string): number {
  return stripVTControlCharacters(line).length;
}
