import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository's folder, with a slash at its end. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** One rule of the protocol, taken away. */
export interface Mutant {
  /** The rule, as a sentence. No two mutants have the same. */
  readonly rule: string;
  /** The file that keeps the rule, from the repository's root. */
  readonly file: string;
  /** The text that keeps it: it occurs once in the file, however its lines are broken. */
  readonly from: string;
  /** The text instead. */
  readonly to: string;
  /** The test files of which one must fail, the quickest first. */
  readonly killers: readonly string[];
  /** Why no test can tell it from the code as it is. Such a mutant is expected to survive. @default none: it must be killed */
  readonly equivalent?: string | undefined;
}

/** A {@link Mutant} of a file that is named once for several of them. */
type MutantOfFile = Omit<Mutant, 'file' | 'killers'> & Partial<Pick<Mutant, 'killers'>>;

/** Tests of the runtime, by their names. */
export function unit(...names: readonly string[]): string[] {
  return names.map((name) => `test/unit/runtime/${name}.test.ts`);
}

/**
 * The mutants of one file.
 *
 * @param file - below `lambdas/runtime/`
 * @param killers - of each mutant that names none
 */
export function mutantsOf(
  file: string,
  killers: readonly string[],
  mutants: readonly MutantOfFile[],
): Mutant[] {
  return mutants.map((mutant) => ({ killers, ...mutant, file: `lambdas/runtime/${file}` }));
}

/**
 * A source text with a rule taken away.
 *
 * @throws when the text that keeps the rule does not occur, or occurs more than once: the mutant must be aimed anew
 */
export function mutated(source: string, { rule, file, from, to }: Mutant): string {
  const found = [...source.matchAll(patternOf(from))];
  const [only] = found;
  if (only === undefined || found.length > 1) {
    throw new Error(
      `The mutant "${rule}" looks for a text that occurs ${found.length} times in ${file}; it must occur once. ` +
        `Aim it at the code as it is now: ${from}`,
    );
  }
  return source.slice(0, only.index) + to + source.slice(only.index + only[0].length);
}

/** Why a mutant cannot be tried as it is listed; `undefined` when it can. */
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

/** Finds a text whatever spaces and line breaks a formatter puts into it. */
function patternOf(text: string): RegExp {
  const words = text.split(/\s+/).map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'));
  return new RegExp(words.join('\\s+'), 'g');
}
