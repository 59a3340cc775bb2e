import { escaped, jsonLine } from './escaped.ts';

/** The formats of an exported list. */
export type ExportFormat = 'csv' | 'jsonl';

/**
 * A list of flat objects as CSV, with a line of member names, or as one JSON document per line. Times stay epoch milliseconds.
 *
 * @param columns - every member of an item, in the order of the columns: a list without items has the same head
 */
export function exported<Item extends object>(
  items: readonly Item[],
  format: ExportFormat,
  columns: Readonly<Record<keyof Item, true>>,
): string {
  if (format === 'jsonl') return items.map(jsonLine).join('\n');
  const names = Object.keys(columns);
  const lines = items.map((item) => names.map((name) => cell((item as Record<string, unknown>)[name])));
  return [names, ...lines].map((line) => line.join(',')).join('\n');
}

/** A cell as RFC 4180 has it. A text that a spreadsheet would run as a formula gets an apostrophe. */
function cell(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string') return String(value);
  const text = escaped(value).replace(/^[=+\-@]/, "'$&");
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
