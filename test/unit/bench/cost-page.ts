import { readFileSync } from 'node:fs';

/** The text of docs/cost.md. */
export function costPage(): string {
  return readFileSync(new URL('../../../docs/cost.md', import.meta.url), 'utf8');
}

/** A row of a table as it is there. */
export function line(row: readonly (string | number)[]): string {
  return `| ${row.join(' | ')} |`;
}
