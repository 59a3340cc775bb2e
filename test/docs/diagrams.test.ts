import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ROOT, readPages } from './pages.ts';

const STORE = `${ROOT}lambdas/runtime/store/`;
const store = readdirSync(STORE)
  .map((file) => readFileSync(STORE + file, 'utf8'))
  .join('\n');
const diagrams = readPages()
  .filter(({ path }) => path === 'docs/concepts.md')
  .flatMap(({ blocks }) => blocks)
  .filter(({ language, code }) => language === 'mermaid' && code.startsWith('stateDiagram'));

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
  const diagram = diagrams.find((block) => block.heading === heading);
  expect(members(type).length).toBeGreaterThan(3);
  expect(states(diagram?.code ?? '')).toEqual(members(type));
});
