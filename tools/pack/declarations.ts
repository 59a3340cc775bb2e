import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';

/**
 * Copies the declarations that the entries reach. An import of an optional package is preceded by `@ts-expect-error`, so that an app
 * without the package compiles even with `skipLibCheck: false`: there the package's types are `any`.
 *
 * @param from - the folder that tsc wrote them to
 * @param to - the folder for the copies
 * @param entries - paths from the folder, without an extension
 * @param optional - names of packages
 */
export async function copyDeclarations(
  from: string,
  to: string,
  entries: readonly string[],
  optional: readonly string[],
): Promise<void> {
  for (const file of await reachedFiles(from, entries, '.d.ts')) {
    const text = await readFile(join(from, file), 'utf8');
    await mkdir(dirname(join(to, file)), { recursive: true });
    await writeFile(
      join(to, file),
      text.replace(TS_EXTENSION, '.js').replace(IMPORT, (line, name) => ignored(line, name, optional)),
    );
  }
}

/**
 * The files that the entries import, directly or not, and the entries themselves.
 *
 * @param folder - contains all of them
 * @param entries - paths from there, without an extension
 * @param extension - `.js` or `.d.ts`
 * @returns paths from the folder, sorted
 * @example
 * await reachedFiles('dist', ['lib/index'], '.js'); // ['lib/index.js', 'lib/mailroom.js', …]
 */
export async function reachedFiles(
  folder: string,
  entries: readonly string[],
  extension: '.js' | '.d.ts',
): Promise<readonly string[]> {
  const reached = new Set(entries.map((entry) => entry + extension));
  // A set also visits what is added during the loop.
  for (const file of reached) {
    const text = await readFile(join(folder, file), 'utf8');
    // Declarations name the TypeScript files that they were made of.
    for (const [, path = ''] of text.matchAll(/(?:\bfrom |\bimport\()'(\.\.?\/[^']+)\.[jt]s'/g))
      reached.add(posix.join(posix.dirname(file), path) + extension);
  }
  return [...reached].sort();
}

/** The extension of an imported file: tsc keeps it, and type-aware linters do not resolve it. */
const TS_EXTENSION = /(?<=['"]\.[^'"\n]*)\.ts(?=['"])/g;

/** A line that imports a package; tsc writes each on its own line. */
const IMPORT = /^(?:import|export) .* from '((?:@[^/']+\/)?[^./'][^/']*)[^']*';$/gm;

function ignored(line: string, name: string, optional: readonly string[]): string {
  return optional.includes(name) ? `// @ts-ignore: ${name} is optional\n${line}` : line;
}
