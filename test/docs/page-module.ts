import { CODE_FOLDER } from './page-code.ts';
import { ROOT } from './pages.ts';
import { writeCode } from './write-code.ts';

/**
 * What a file that a page shows exports, from the page's own text.
 *
 * @param page - such as `docs/recipes/electrodb.md`
 * @param file - as the block names it, such as `src/place-order.ts`
 * @throws Error If the page has no such file.
 * @example
 * const { placeOrder } = await codeOf<{ placeOrder: PlaceOrder }>('docs/recipes/electrodb.md', 'src/place-order.ts');
 */
export async function codeOf<Exports>(page: string, file: string): Promise<Exports> {
  const path = `${CODE_FOLDER}${page}/${file}`;
  if (!writeCode().includes(path)) throw new Error(`${page} shows no file=${file}; name one that it shows.`);
  return (await import(ROOT + path)) as Exports;
}

/** Runs something in the folder of a page's code, where the paths of its constructs begin. It must not wait for anything. */
export function inFolderOf<T>(page: string, run: () => T): T {
  const before = process.cwd();
  process.chdir(`${ROOT}${CODE_FOLDER}${page}`);
  try {
    return run();
  } finally {
    process.chdir(before);
  }
}
