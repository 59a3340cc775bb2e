import type { FigureTable } from './part.ts';

/** Formats a table as Markdown, with figures right-aligned. */
function markdownTable({ head, rows }: FigureTable): string {
  const right = head.map((_, column) => rows.length > 0 && rows.every((row) => isFigure(row[column])));
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(right.map((isRight) => (isRight ? '---:' : '---'))), ...rows.map(line)].join('\n');
}

/** Inserts tables into a text, each between its own two comments. Omits a table without such comments. */
export function withTables(text: string, tables: readonly FigureTable[]): string {
  return tables.reduce((changed, table) => {
    const [begin, end] = [`<!-- bench:${table.name} -->`, `<!-- /bench:${table.name} -->`];
    const [from, to] = [changed.indexOf(begin), changed.indexOf(end)];
    if (from < 0 || to < from) return changed;
    return `${changed.slice(0, from + begin.length)}\n${markdownTable(table)}\n${changed.slice(to)}`;
  }, text);
}

function isFigure(cell: string | number | undefined): boolean {
  return typeof cell === 'number' || /^[-~≈<>]*[\d.,]+( |$|%|×)/.test(cell ?? '');
}
