import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { reachedFiles } from './reached-files.ts';

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

/** The extension of an imported file: tsc keeps it, and type-aware linters do not resolve it. */
const TS_EXTENSION = /(?<=['"]\.[^'"\n]*)\.ts(?=['"])/g;

/** A line that imports a package; tsc writes each on a line of its own. */
const IMPORT = /^(?:import|export) .* from '((?:@[^/']+\/)?[^./'][^/']*)[^']*';$/gm;

function ignored(line: string, name: string, optional: readonly string[]): string {
  return optional.includes(name) ? `// @ts-ignore: ${name} is optional\n${line}` : line;
}
