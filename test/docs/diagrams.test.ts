import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { deadLetterSources } from '../../cli/reports/dead-letters/dead-letters.ts';
import { SOURCE_ARGUMENT } from '../../cli/terminal/arguments.ts';
import { directory } from '../unit/cli/support/mailroom-in-memory.ts';
import { ROOT, readPages } from './pages.ts';

const STORE = `${ROOT}lambdas/runtime/store/`;
const store = readdirSync(STORE)
  .filter((file) => file.endsWith('.ts'))
  .map((file) => readFileSync(STORE + file, 'utf8'))
  .join('\n');
const diagrams = readPages()
  .filter(({ path }) => path === 'docs/concepts.md')
  .flatMap(({ blocks }) => blocks)
  .filter(({ language }) => language === 'mermaid');

/** The code of the diagram of one kind under a heading; empty when there is none. */
function diagram(heading: string, kind: string): string {
  return diagrams.find((block) => block.heading === heading && block.code.startsWith(kind))?.code ?? '';
}

/** The members of a union of texts in the store's code. */
function members(type: string): string[] {
  const union = new RegExp(`export type ${type} =([^;]+);`).exec(store)?.[1] ?? '';
  return [...union.matchAll(/'(\w+)'/g)].map(([, member = '']) => member).sort();
}

/** The states of a Mermaid state diagram, beside its start and end. */
function states(code: string): string[] {
  const ends = [...code.matchAll(/^ {2}(\S+) --> (\S+?):/gm)].flatMap(([, from = '', to = '']) => [from, to]);
  return [...new Set(ends)].filter((state) => state !== '[*]').sort();
}

test.each([
  ['The outbox', 'OutboxStatus'],
  ['The inbox', 'InboxStatus'],
])('the diagram under "%s" has the states of %s', (heading, type) => {
  expect(members(type).length).toBeGreaterThan(3);
  expect(states(diagram(heading, 'stateDiagram'))).toEqual(members(type));
});

describe('the diagram of the dead-letter sources', () => {
  const code = diagram('Dead letters, and the way back', 'flowchart');
  const [worker] = directory.consumers;
  const consumers = worker === undefined ? [] : [{ ...worker, name: 'payments' }];
  const sources = deadLetterSources({ ...directory, consumers }).map(({ name }) => name);

  /** The nodes at the end of dotted arrows, by the first line of their label. */
  const drawn = new Map(
    [...code.matchAll(/-\. ".*?" \.-> (\w+)\["([^"<]+)/g)].map(([, node = '', name = '']) => [name, node]),
  );

  test('the diagram shows exactly the sources that the command has', () => {
    expect(sources.length).toBeGreaterThan(3);
    expect([...drawn.keys()].sort()).toEqual([...sources].sort());
  });

  test('names them as the help of the command does', () => {
    const names = [...drawn.keys()].map((name) => name.replace('payments', '<consumer>'));
    expect(SOURCE_ARGUMENT.split(/, or |, | or /).sort()).toEqual(names.sort());
  });

  test('the diagram shows a redrive from each source', () => {
    const left = [...code.matchAll(/^ {2}(\w+) == ".*?" ==> \w+$/gm)].map(([, node]) => node);
    expect(left.sort()).toEqual([...drawn.values()].sort());
  });
});

test('the lease diagram refuses the worker whose fencing token is not the last one', () => {
  const code = diagram('The inbox', 'sequenceDiagram');
  const claims = [...code.matchAll(/T-->>([AB]): PROCESSING, fence (\w+)/g)].map(([, by, fence]) => [
    by,
    fence,
  ]);
  const commits = [...code.matchAll(/([AB])->>T: commit if fence = (\w+)/g)].map(([, by, fence]) => [
    by,
    fence,
  ]);
  const [first, last] = claims;
  expect(claims).toHaveLength(2);
  expect(commits).toEqual([first, last]);
  expect(code).toContain(`T--x${first?.[0]}: refused: the fence is ${last?.[1]}`);
});

describe('the picture of the flow', () => {
  const svg = readFileSync(`${ROOT}docs/images/flow.svg`, 'utf8');
  const readme = readFileSync(`${ROOT}README.md`, 'utf8');

  test('README.md shows the diagram by an address that npm can show, too', () => {
    expect(readme).toContain('](https://github.com/cdk-mailroom/cdk-mailroom/raw/main/docs/images/flow.svg)');
    expect(readme).not.toContain('```mermaid');
  });

  test('needs no other file, and has the same colors for a dark page', () => {
    expect(svg.match(/https?:[^"')\s]+|url\((?!#)|<script|<image/g)).toEqual(['http://www.w3.org/2000/svg']);
    const [light = [], dark = []] = [...svg.matchAll(/svg \{(?<colors>[^}]+)\}/g)].map(({ groups }) =>
      [...(groups?.colors ?? '').matchAll(/(--\w+):/g)].map(([, name]) => name),
    );
    expect(svg).toContain('@media (prefers-color-scheme: dark)');
    expect(light.length).toBeGreaterThan(5);
    expect(dark).toEqual(light);
    const used = [...svg.matchAll(/var\((--\w+)\)/g)].map(([, name]) => name);
    expect(used.filter((name) => !light.includes(name))).toEqual([]);
  });
});
