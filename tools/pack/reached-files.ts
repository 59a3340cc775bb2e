import { readFile } from 'node:fs/promises';
import { join, posix } from 'node:path';

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
