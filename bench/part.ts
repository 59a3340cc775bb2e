import type { CapacityTarget } from './capacity/plan.ts';

/** A table of figures, for the terminal and for the docs. */
export interface FigureTable {
  /** The marker of its position in the docs: `<!-- bench:NAME -->`. */
  readonly name: string;
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
}

/** The result of a part of the benchmark. */
export interface PartResult {
  /** Its members of the JSON document. */
  readonly json: Readonly<Record<string, unknown>>;
  readonly tables: readonly FigureTable[];
}

/** Options of a part. */
export interface PartSettings {
  /** Reports progress. */
  readonly say: (line: string) => void;
  /** Uses small sizes, as a smoke test; the figures mean little. */
  readonly quick: boolean;
  /** Lets a part install what it measures beside Mailroom, in a temporary folder. */
  readonly install: boolean;
  /** Plans the capacity for this instead of for the rates of the docs. */
  readonly target?: CapacityTarget | undefined;
}

/** A part of the benchmark: `npm run bench -- NAME`. */
export interface Part {
  readonly name: string;
  /** One line: what it measures. */
  readonly title: string;
  run(settings: PartSettings): Promise<PartResult>;
}

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
