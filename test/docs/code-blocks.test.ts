import { describe, expect, test } from 'vitest';
import { codeBlocks } from './code-blocks.ts';

const page = [
  '# A page',
  '',
  '```ts file=src/events.ts',
  'export const a = 1;',
  '```',
  '',
  '## Repair it ##',
  '',
  '<!-- ts',
  'declare const b: number;',
  '-->',
  '```ts',
  'b + 1;',
  '```',
  '1. A step:',
  '   ```sh',
  '   # no heading',
  '     npm run demo',
  '   ```',
  '````',
  '```',
  '````',
].join('\n');

describe('the blocks of a page', () => {
  const [named, fragment, shell, plain, ...rest] = codeBlocks(page);

  test('code blocks are found in order, with language, file and heading', () => {
    expect(named).toMatchObject({ language: 'ts', file: 'src/events.ts', heading: 'A page' });
    expect(fragment).toMatchObject({ language: 'ts', file: undefined, heading: 'Repair it' });
    expect(shell).toMatchObject({ language: 'sh', heading: 'Repair it' });
    expect(rest).toEqual([]);
  });

  test('know the line of the page on which their code begins', () => {
    const lines = page.split('\n');
    for (const block of [named, fragment, plain]) {
      expect(lines[(block?.line ?? 0) - 1]).toBe(block?.code.split('\n')[0]);
    }
  });

  test('the comment directly above a code block is its prelude, with its line', () => {
    expect(fragment?.prelude).toEqual({ code: 'declare const b: number;\n', line: 10 });
    expect(named?.prelude).toBeUndefined();
  });

  test('lose the indentation of their list and no more', () => {
    expect(shell?.code).toBe('# no heading\n  npm run demo\n');
  });

  test('may hold shorter fences', () => {
    expect(plain?.code).toBe('```\n');
  });
});

test.each([
  ['a fence that is never closed', '```ts\nlet a;\n', 'Line 1: the fence "```ts" is never closed'],
  [
    'a prelude that is never closed',
    'Text\n<!-- ts\nlet a;\n',
    'Line 2: the comment "<!-- ts" is never closed',
  ],
  ['a prelude above prose', '<!-- ts\nlet a;\n-->\n\nText\n', 'Line 4: expected a ts block'],
  [
    'a prelude above another language',
    '<!-- ts\nlet a;\n-->\n```sh\nls\n```\n',
    'Line 4: expected a ts block',
  ],
])('%s is refused by its line', (_, markdown, message) => {
  expect(() => codeBlocks(markdown)).toThrow(message);
});
