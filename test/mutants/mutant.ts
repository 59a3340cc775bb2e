import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the repository, with a trailing slash. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The code without one rule of the protocol. */
export interface Mutant {
  /** The rule, as a sentence. Unique. */
  readonly rule: string;
  /** The file that implements the rule, from the root of the repository. */
  readonly file: string;
  /** The text that implements it. It occurs once in the file; line breaks and indentation do not matter. */
  readonly from: string;
  /** The replacement. */
  readonly to: string;
  /** Test files, the fastest first. At least one test of them must fail. */
  readonly killers: readonly string[];
  /** The reason why no test can tell it from the original code. @default none: a test must kill it */
  readonly equivalent?: string | undefined;
}

/** The rule, its text and the replacement; last, for an equivalent mutant, the reason why no test can tell it from the original. */
type Row = readonly [rule: string, from: string, to: string, equivalent?: string];

/** The folders of the tests that kill mutants. */
const TESTS = ['test/unit/runtime', 'test/unit/cli', 'test/unit/stored-shape', 'test/attack'].flatMap(
  (folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path}`),
);

/**
 * The mutants of one file.
 *
 * @param file - below `lambdas/runtime/`, or from the root of the repository
 * @param tests - the names of the tests that kill them, without `.test.ts`, separated by spaces; the most likely first
 */
export function mutantsOf(file: string, tests: string, rows: readonly Row[]): Mutant[] {
  const killers = tests
    .split(' ')
    .map((name) => TESTS.find((path) => basename(path) === `${name}.test.ts`) ?? name);
  const path = file.startsWith('cli/') ? file : `lambdas/runtime/${file}`;
  return rows.map(([rule, from, to, equivalent]) => ({ rule, file: path, from, to, killers, equivalent }));
}

/**
 * Takes a rule out of a source text.
 *
 * @throws when the text of the rule does not occur exactly once
 */
export function mutated(source: string, { rule, file, from, to }: Mutant): string {
  const found = [...source.matchAll(patternOf(from))];
  const [only] = found;
  if (only === undefined || found.length > 1) {
    throw new Error(
      `The mutant "${rule}" replaces a text that occurs ${found.length} times in ${file}; it must occur once. ` +
        `Update its "from": ${from}`,
    );
  }
  return source.slice(0, only.index) + to + source.slice(only.index + only[0].length);
}

/** Checks that a mutant fits the code. @returns the problem; `undefined` when there is none */
export function problemOf(mutant: Mutant): string | undefined {
  const missing = [mutant.file, ...mutant.killers].find((path) => !existsSync(join(ROOT, path)));
  if (missing !== undefined) return `The mutant "${mutant.rule}" names ${missing}, which does not exist.`;
  try {
    const source = readFileSync(join(ROOT, mutant.file), 'utf8');
    return mutated(source, mutant) === source
      ? `The mutant "${mutant.rule}" changes nothing in ${mutant.file}.`
      : undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Matches a text with any white space between its words, so that the formatter may reflow it. */
function patternOf(text: string): RegExp {
  const words = text.split(/\s+/).map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'));
  return new RegExp(words.join('\\s+'), 'g');
}
