import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { Button } from './controls.tsx';
import { count } from './format.ts';

/** A column of a {@link Table}. */
export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Aligned to the right, in figures of equal width. */
  readonly isNumber?: boolean;
}

interface TableProps<Row> {
  /** Names the table; visible. */
  readonly caption: ComponentChildren;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** Shown instead of a table without rows, e.g. `No dead letters.` */
  readonly empty: ComponentChildren;
}

/** The rows of a page. */
const PAGE_SIZE = 50;

/** A table in pages. In a narrow window each row becomes a block with the titles of its columns. */
export function Table<Row>({ caption, columns, rows, keyOf, empty }: TableProps<Row>) {
  const [wanted, setPage] = useState(0);
  const id = useId();
  if (rows.length === 0) return <p class="quiet-text">{empty}</p>;
  const pages = Math.ceil(rows.length / PAGE_SIZE);
  const page = Math.min(wanted, pages - 1); // rows may have gone
  const shown = rows.slice(page * PAGE_SIZE, (page + 1) * PAGE_SIZE);
  return (
    <div class="table">
      <table id={id}>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, isNumber }) => (
              <th key={title} scope="col" class={isNumber ? 'number' : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, cell, isNumber }) => (
                <td key={title} data-title={title} class={isNumber ? 'number' : undefined}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {pages > 1 && (
        <nav class="pages" aria-label="Pages of the table">
          <Button isDisabled={page === 0} onClick={() => setPage(page - 1)} aria-controls={id}>
            Previous
          </Button>
          <span aria-live="polite">
            {count(page * PAGE_SIZE + 1)}–{count(page * PAGE_SIZE + shown.length)} of {count(rows.length)}
          </span>
          <Button isDisabled={page === pages - 1} onClick={() => setPage(page + 1)} aria-controls={id}>
            Next
          </Button>
        </nav>
      )}
    </div>
  );
}

interface FactProps {
  readonly title: ComponentChildren;
  /** @default '' */
  readonly class?: string | undefined;
  readonly children: ComponentChildren;
}

/** A named value of a `<dl>`; nothing without a value. */
export function Fact({ title, class: name, children }: FactProps) {
  if (children === null) return null;
  return (
    <div class={name}>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  );
}
