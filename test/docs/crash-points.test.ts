import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from './pages.ts';

const PAGE = 'test/explorer/crash-points.md';
const rows = readFileSync(ROOT + PAGE, 'utf8')
  .split('\n')
  .filter((line) => /^\| (?!crash or failure|---)/.test(line));

const explorer = readdirSync(`${ROOT}test/explorer`)
  .filter((file) => file.endsWith('-scenarios.ts'))
  .map((file) => readFileSync(`${ROOT}test/explorer/${file}`, 'utf8'))
  .join('\n');
const scenarios = [...explorer.matchAll(/\bname: '([^']+)'/g)].map(([, name = '']) => name);
const chaos = readdirSync(`${ROOT}test/chaos/scenarios`).map((file) => basename(file, '.ts'));
const files = readdirSync(`${ROOT}test`, { recursive: true, encoding: 'utf8' }).map((path) => basename(path));

/** A scenario of the explorer in italics; a scenario of chaos, or a test file, as code. */
const NAME = /\*([^*]+)\*|`([^`]+)`/g;

/** The names of a row's last cell: `*…*` are scenarios of the explorer, `…` test files or chaos scenarios. */
function namesOf(row: string): string[] {
  const shownBy = row.split(' | ').at(-1) ?? '';
  if (shownBy.startsWith('every scenario')) return scenarios;
  return [...shownBy.matchAll(NAME)].map(([, italic, code]) => italic ?? code ?? '');
}

describe(`the crash points of ${PAGE}`, () => {
  test('every crash point is listed', () => {
    expect(rows.length).toBeGreaterThan(50);
  });

  test('docs/guarantees.md names scenarios that exist', () => {
    const [, section = ''] = readFileSync(`${ROOT}docs/guarantees.md`, 'utf8').split(
      '## How this is tested\n',
    );
    const cells = section.split('\n').filter((line) => /^\| (?!guarantee|---)/.test(line));
    const names = cells.flatMap((line) => [...line.matchAll(NAME)]).map(([, italic, code]) => italic ?? code);
    expect(names.length).toBeGreaterThan(10);
    expect(names.filter((name) => ![...scenarios, ...chaos].includes(name ?? ''))).toEqual([]);
  });

  test.each(rows.map((row) => [row.split(' | ')[0]?.slice(2), row]))('%s: its tests exist', (_name, row) => {
    const names = namesOf(row);
    expect(names).not.toEqual([]);
    const unknown = names.filter((name) => ![...scenarios, ...chaos, ...files].includes(name));
    expect(unknown).toEqual([]);
  });
});
