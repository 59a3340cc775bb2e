import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ROOT } from './pages.ts';
import { type RetiredUse, usesInCode, usesInPage, usesInRepository } from './retired-words.ts';

/** Paths that the words are kept out of. A folder ends with a slash. */
const SCOPE = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'llms.txt',
  '.github/',
  'bench/',
  'bin/',
  'cli/',
  'demo/',
  'docs/',
  'lambdas/',
  'lib/',
  'localstack/',
  'test/',
  'testing/',
  'tools/',
  'verify/',
];

/** Legitimate uses: the file, some of the words around the use, and the reason. */
const ALLOWED: readonly { readonly path: string; readonly words: string; readonly because: string }[] = [
  {
    path: 'bench/corpus.ts',
    words: 'at number 12 if nobody answers',
    because: 'A customer wrote it, and its bytes are part of the measured payloads.',
  },
  {
    path: 'bench/corpus.ts',
    words: 'The colour should match',
    because: 'A customer wrote it, too.',
  },
  {
    path: 'lib/checks/names.ts',
    words: 'starting with a letter',
    because: 'It is a character of the alphabet, not a dead letter.',
  },
];

const isBelow = (path: string, folders: readonly string[]) =>
  folders.some((folder) => (folder.endsWith('/') ? path.startsWith(folder) : path === folder));
// This file names them.
const checked = (path: string) => isBelow(path, SCOPE) && path !== 'test/docs/retired-words.test.ts';
const isAllowed = ({ path, context }: RetiredUse) =>
  ALLOWED.some((allowed) => allowed.path === path && context.includes(allowed.words));

describe('retired words', () => {
  const uses = usesInRepository(checked);

  test('no page, message or doc comment contains a retired word', () => {
    const reported = uses
      .filter((use) => !isAllowed(use))
      .map(({ path, line, word, instead }) => `${path}:${line}: "${word}": use ${instead}`);
    expect(reported).toEqual([]);
  });

  test('every searched path exists', () => {
    const paths = [...SCOPE, ...ALLOWED.map(({ path }) => path)];
    expect(paths.filter((path) => !existsSync(ROOT + path))).toEqual([]);
  });

  test('every exception is needed', () => {
    const unused = ALLOWED.filter(({ path }) => checked(path)).filter(
      ({ path, words }) => !uses.some((use) => use.path === path && use.context.includes(words)),
    );
    expect(unused).toEqual([]);
  });
});

const found = (uses: readonly RetiredUse[]) => uses.map(({ line, word }) => `${line}: ${word}`);

describe('the search in a page', () => {
  test.each([
    ['Nobody knows.', 'Nobody'],
    ['It is kept for\never.', 'for ever'],
    ['The relay gives up.', 'gives up'],
    ['Once it is mended, redrive it.', 'mended'],
    ['So long it waits.', 'So long'],
    ['It expires in so many days.', 'in so many'],
    ['Consumers shall absorb it.', 'shall'],
    ['The letter is discarded.', 'letter'],
    ['It looks into every place.', 'every place'],
    ['The consumer misses its promise.', 'its promise'],
    ['The consumer stands still.', 'stands still'],
    ['The stream path marks it, the sweep path does not.', 'stream path', 'sweep path'],
    ['The message comes again.', 'comes again'],
    ['It refuses a receipt that is none.', 'that is none'],
    ['A throttle is no lost answer.', 'is no'],
    ['It runs on a clock of its own.', 'of its own'],
    ['It has no payload at all.', 'at all'],
    ['In the end, it is rejected for good.', 'In the end', 'for good'],
    ['It waits so many minutes and starts anew.', 'so many', 'anew'],
    ['Whoever reads it knows what is to be done.', 'Whoever', 'is to be'],
    ['The cause stands below it, and one action suffices.', 'stands below', 'suffices'],
    ['It demands that the row is let in again.', 'demands that', 'let in again'],
    ['Nothing is lost or doubled by foreign events.', 'or doubled', 'foreign events'],
    ['The behaviour is recognised.', 'behaviour', 'recognised'],
  ])('finds the word in "%s"', (sentence, ...words) => {
    expect(usesInPage('a.md', sentence).map(({ word }) => word)).toEqual(words);
  });

  test.each([
    'A dead letter, a dead-letter\nqueue and dead letters.',
    'Names have lower-case letters, digits and hyphens; letters and digits are enough.',
    'The demo places orders, retries in place, and takes the place of a bank.',
    'Order is not promised.',
    'There is no row, and it is no longer leased.',
    'It may write rows of its own service, or none, so many that they do not fit.',
    'It was committed or not at all; a stand-in for the bank; a foreign key.',
    'The command `mend` and its [page](docs/comes again.md).',
    '```json\n{ "letter": "for ever" }\n```',
  ])('finds nothing in "%s"', (sentence) => {
    expect(usesInPage('a.md', sentence)).toEqual([]);
  });

  test('reads the comments and messages of code blocks, and output', () => {
    const page = [
      '# A',
      '```ts',
      'const letter = mend(x); // nobody waits',
      "throw new Error('it comes again');",
      '```',
      '```text',
      'two letters wait',
      '```',
    ];
    expect(found(usesInPage('a.md', page.join('\n')))).toEqual(['7: letters', '3: nobody', '4: comes again']);
  });
});

describe('the search in code', () => {
  test('reads doc comments over line ends, with the line of the word', () => {
    const code = [
      '/**',
      ' * Rows that are kept for',
      ' * ever.',
      ' *',
      ' * `mend` and {@link mend} are names.',
      ' */',
    ];
    expect(found(usesInCode('a.ts', code.join('\n')))).toEqual(['2: for ever']);
  });

  test('refuses a doc comment that opens with a question word, and no other comment', () => {
    const code = [
      '/** What is kept. */',
      '/** The event: what is kept. */',
      '// How it works',
      '/* Who knows. */',
    ];
    expect(found(usesInCode('a.ts', code.join('\n')))).toEqual(['1: What']);
  });

  test('reads messages and templates, but no single words', () => {
    const code = [
      "const a = 'letter';",
      `log(\`a letter of \${text(\`it is \${"not mended"}\`)} waits\`);`,
      "import './mend';",
    ];
    expect(found(usesInCode('a.ts', code.join('\n')))).toEqual(['2: mended', '2: letter']);
  });

  test('a quote in a regular expression or a comment does not begin a string', () => {
    const code = [
      "const q = /['\"`]/.test(x) / 2; // it's mended",
      "say('a letter came');",
      '/* `',
      '*/',
      "say('so long');",
    ];
    expect(found(usesInCode('a.ts', code.join('\n')))).toEqual(['2: letter', '5: so long']);
  });
});
