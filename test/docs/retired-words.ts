import { readdirSync, readFileSync } from 'node:fs';
import { ROOT, readPages } from './pages.ts';
import { blank, textsOfCode } from './texts-of-code.ts';

/** A wording that this project does not use, and the wording to use instead. */
interface RetiredWord {
  readonly pattern: RegExp;
  readonly instead: string;
}

/** A retired word in a file. */
export interface RetiredUse {
  /** From the repository's folder. */
  readonly path: string;
  readonly line: number;
  readonly word: string;
  readonly instead: string;
  /** The words around it, on one line: an exception names some of them. */
  readonly context: string;
}

/** For every text. A space in a pattern also matches a line break. */
const WORDS: readonly RetiredWord[] = [
  retired(/\b(?:nobody|somebody|everybody)\b/, 'the role (operator, developer, principal), or the passive'),
  retired(/\bfor ever\b/, 'permanently, or indefinitely'),
  retired(
    /\b(?:give|gives|giving|gave|given) up\b/,
    'stop retrying; discarded (by an operator); exhausted (attempts)',
  ),
  retired(/\bmend(?:s|ed|ing)?\b/, 'fix, fixed'),
  retired(/\bso long\b/, 'as long as, while, or until then'),
  retired(/\bin so many\b/, 'in, with the number'),
  retired(/\bshall\b/, 'must, may or will'),
  // A character of the alphabet is a letter too.
  retired(
    /(?<!\b(?:dead|capital|lower-case|upper-case)[\s-]+)\bletters?\b(?!,? (?:and )?(?:digits|underscores))/,
    'dead letter, or dead-letter message',
  ),
  retired(/\b(?:by|every) place\b(?! of)|\bfour places\b/, 'source, or dead-letter source'),
  retired(/\b(?:its|latency|the|this) promises?\b|\bpromises? of (?:latency|an? )/, 'SLO'),
  retired(/\bst(?:and|ands|anding|ood) still\b/, 'stalled, or stalls'),
  retired(/\bstream paths?\b/, 'stream relay'),
  retired(/\bsweep paths?\b/, 'sweep relay, or sweep'),
  retired(/\bc(?:ome|omes|oming|ame) again\b/, 'published again, redelivered, or redriven'),
  retired(/\b(?:that|which|what|one) (?:is|are) none\b/, 'what it is not: not a receipt, not a valid time'),
  retired(
    /(?<!\bthere )\b(?:is|are) no (?!longer|more|less|fewer|other|such)(?=[a-z])/,
    'is not a …, or a sentence that says what happens',
  ),
  // "Of its own service" has a noun behind it.
  retired(/\bof (?:its|their) own\b(?! [a-z])/, 'its own …, or nothing'),
  retired(/(?<!\bnot )\bat all\b(?! (?:times|its|of))/, 'nothing'),
  retired(/\bin the end\b/, 'eventually, or nothing'),
  retired(/\bfor good\b/, 'permanently'),
  retired(/(?<!\bin )\bso many\b(?! that)/, 'the number, or a given number of'),
  retired(/\banew\b/, 'again, or starts over'),
  retired(/\bwhoever\b/, 'the role, or the passive'),
  retired(/\b(?:is|are|was|were) to be\b/, 'must be, will be, or the passive'),
  retired(/\bst(?:ands?|ood) (?:above|below|beside|before|behind|there|under)\b/, 'is, precedes, or follows'),
  retired(/\bsuffices?\b/, 'is enough'),
  retired(/\bdemands? that\b/, 'requires'),
  retired(/\blets? (?:it |them )?in again\b/, 'accepts again, or readmits'),
  retired(/\b(?:nothing|nor|or|is|are|was|were|be) doubled\b/, 'duplicated'),
  retired(/\bforeign (?:events?|origins?|hosts?|ids?)\b/, 'external'),
  retired(/\btwice \d+ minutes\b/, 'the sum'),
  retired(
    /\b(?:behaviours?|colours?|coloured|licences?|favours?|grey|(?:normal|initial|recogn|serial|organ|summar|synchron|minim|maxim|optim|visual|real|categor|custom)is(?:e[ds]?|ing|ation))\b/,
    'American spelling',
  ),
];

/** For comments that document an export or a member: they begin with a noun phrase or a verb. */
const OPENING = retired(
  /^\s*(?:what|whatever|how|whether|who|whoever|whose|where|wherever)\b/,
  'a noun phrase or a verb at the start of a doc comment',
);

/**
 * The retired words in prose, with the line of each. Code within a line, targets of links and comments of HTML are left out.
 *
 * @param path - only for the answer
 * @example
 * usesInPage('docs/a.md', 'It is fixed.'); // [{ path: 'docs/a.md', line: 1, word: 'fixed', instead: 'fix, fixed', … }]
 */
export function usesInPage(path: string, markdown: string): RetiredUse[] {
  const code: RetiredUse[] = [];
  const prose = markdown
    .replaceAll(/^ *(`{3,})(\w*)[\s\S]*?^ *\1`*$/gm, (block, _, language: string, offset: number) => {
      if (language !== 'ts') return language === 'json' ? blank(block) : block;
      const before = markdown.slice(0, offset).split('\n').length - 1;
      code.push(...usesInCode(path, block.replace(/^.*|.*$/g, ''), before, ['doc', 'comment', 'string']));
      return blank(block);
    })
    .replaceAll(/<!--[\s\S]*?-->|(?<!`)`[^`\n]+`(?!`)|\]\([^)]*\)/g, blank);
  return [...usesIn(path, prose, 1), ...code];
}

/**
 * The retired words in the doc comments of a TypeScript file and in its strings of more than one word, which are messages.
 *
 * @param path - only for the answer
 * @param linesBefore - lines above the code, when it is a part of a file
 * @param kinds - what to look at: one more kind is `comment`
 * @example
 * usesInCode('lib/a.ts', '/** How long. *\/'); // [{ path: 'lib/a.ts', line: 1, word: 'How', … }]
 */
export function usesInCode(
  path: string,
  code: string,
  linesBefore = 0,
  kinds: readonly string[] = ['doc', 'string'],
): RetiredUse[] {
  return textsOfCode(code).flatMap(({ kind, text, line }) => {
    if (!kinds.includes(kind)) return [];
    if (kind === 'string' && !/\S\s+\S/.test(text)) return [];
    const prose = kind === 'string' ? text : text.replaceAll(/`[^`\n]+`|\{@link [^}]*\}/g, blank);
    // Doc comments of tests are no reference.
    const isReference = kind === 'doc' && !path.startsWith('test/');
    return usesIn(path, prose, linesBefore + line, isReference ? [...WORDS, OPENING] : WORDS);
  });
}

/**
 * The retired words in the pages, the TypeScript files and the workflows of the repository that `includes` accepts.
 *
 * @param includes - is called with each path from the repository's folder
 */
export function usesInRepository(includes: (path: string) => boolean): RetiredUse[] {
  const pages = readPages().filter(({ path }) => includes(path));
  const sources = CODE_FOLDERS.flatMap((folder) =>
    readdirSync(ROOT + folder, { recursive: true, encoding: 'utf8' }).map((file) => folder + file),
  ).filter((path) => /\.tsx?$/.test(path) && includes(path));
  const forms = readdirSync(`${ROOT}.github`, { recursive: true, encoding: 'utf8' })
    .map((file) => `.github/${file}`)
    .filter((path) => /\.(?:md|yml)$/.test(path) && includes(path));
  return [
    ...pages.flatMap(({ path, text }) => usesInPage(path, text)),
    ...forms.flatMap((path) => usesInPage(path, readFileSync(ROOT + path, 'utf8'))),
    ...sources.flatMap((path) => usesInCode(path, readFileSync(ROOT + path, 'utf8'))),
  ];
}

const CODE_FOLDERS = [
  'bench/',
  'bin/',
  'cli/',
  'demo/',
  'lambdas/',
  'lib/',
  'localstack/',
  'test/',
  'testing/',
  'tools/',
  'verify/',
];

function retired({ source }: RegExp, instead: string): RetiredWord {
  return { pattern: new RegExp(source.replaceAll(' ', '\\s+'), 'gi'), instead };
}

function usesIn(path: string, text: string, firstLine: number, words = WORDS): RetiredUse[] {
  return words.flatMap(({ pattern, instead }) =>
    [...text.matchAll(pattern)].map((match) => ({
      path,
      line: firstLine + (text.slice(0, match.index + match[0].search(/\S/)).split('\n').length - 1),
      word: oneLine(match[0]),
      instead,
      context: oneLine(text.slice(Math.max(0, match.index - 60), match.index + match[0].length + 60)),
    })),
  );
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
