import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
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
}

/** A rule, its text and the replacement. */
type Row = readonly [rule: string, from: string, to: string];

/**
 * The rows below it are those of this file, below `lambdas/runtime/`, or from the root of the repository. Tests are named without `.test.ts`, separated by
 * spaces, with their folder if others have the same name; the most likely to fail first.
 */
type Heading = readonly [file: string, tests: string];

/** The folders of the tests that kill mutants. */
const TESTS = [
  'test/unit/runtime',
  'test/unit/cli',
  'test/unit/stored-shape',
  'test/attack',
  'test/contract',
  'test/property',
  'test/mysql',
].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path}`),
);

/** The mutants of a part of the protocol: for each file a heading, then its rows. */
export function mutantsOf(lines: readonly (Heading | Row)[]): Mutant[] {
  let file = '';
  let killers: string[] = [];
  return lines.flatMap((line) => {
    if (line.length === 3) return { rule: line[0], file, from: line[1], to: line[2], killers };
    file = line[0].startsWith('cli/') ? line[0] : `lambdas/runtime/${line[0]}`;
    killers = line[1]
      .split(' ')
      .map((name) => TESTS.find((path) => path.endsWith(`/${name}.test.ts`)) ?? name);
    return [];
  });
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
