import { expect, test } from 'vitest';
import { drawn } from '../../../tools/site/diagrams.ts';
import { readPages } from '../../docs/pages.ts';

const diagrams = readPages().flatMap(({ path, blocks }) =>
  blocks
    .filter(({ language }) => language === 'mermaid')
    .map(({ line, code }) => ({ at: `${path}:${line}`, code })),
);

test('there are diagrams', () => {
  expect(diagrams.length).toBeGreaterThan(4);
});

test.each(diagrams)('the diagram of $at is drawn with the colors of the page', ({ code }) => {
  const figure = drawn(code);
  expect(figure).toMatch(/^<figure class="diagram" [^>]*v-pre><svg [^>]*--bg:var\(--vp-c-bg\)/);
  // Vue refuses a style sheet inside a page, and one that is imported would be loaded from another server.
  expect(figure).not.toMatch(/<style|@import|<script/);
});

test('an arrow that ends in a cross is drawn with a cross, and the others are not', () => {
  const figure = drawn(
    'sequenceDiagram\n  participant A\n  participant B\n  A->>B: claim\n  B--xA: refused\n  B-->>A: done\n',
  );
  const ends = [...figure.matchAll(/<g class="message".*data-label="(\w+)"[\s\S]*?url\(#([\w-]+)\)/g)];
  expect(ends.map(([, label, end]) => [label, end])).toEqual([
    ['claim', 'seq-arrow'],
    ['refused', 'seq-cross'],
    ['done', 'seq-arrow'],
  ]);
  expect(figure).toContain('<marker id="seq-cross"');
});

test('a diagram that cannot be drawn is named', () => {
  expect(() => drawn('gitGraph\n  commit\n')).toThrow('The diagram "gitGraph" cannot be drawn: ');
});
