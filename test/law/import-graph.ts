import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';

/** The folder of the repository. */
export const ROOT = new URL('../../', import.meta.url);

/** One import of one file, or what it hands on with `export … from`. */
export interface Import {
  /** The importing file, from the repository's root. */
  readonly from: string;
  /** The imported file, from the repository's root; or a package, as it is written. */
  readonly to: string;
  /** What is imported by name and is there when the code runs; none for a namespace, or for types alone. */
  readonly values: readonly string[];
  /** Gone when the code runs: `import type`. */
  readonly typeOnly: boolean;
}

/** Every import of the TypeScript files below these folders. */
export function importsBelow(folders: readonly string[]): Import[] {
  return folders.flatMap((folder) =>
    readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' })
      .map((path) => posix.join(folder, path.replaceAll('\\', '/')))
      .filter((file) => /\.tsx?$/.test(file))
      .sort()
      .flatMap((file) => importsIn(file, readFileSync(new URL(file, ROOT), 'utf8'))),
  );
}

// As the formatter writes them: at the start of a line, in single quotes.
const STATEMENT = /^(?:import|export)\s+(type\s+)?(?:([\w$*{},\s]+?)\s+from\s+)?'([^']+)';$/gm;
const CALL = /\bimport\('([^']+)'\)/g;

export function importsIn(file: string, text: string): Import[] {
  const statements = [...text.matchAll(STATEMENT)].map(([, type, names = '', to = '']) => ({
    from: file,
    to: resolved(file, to),
    values: type === undefined ? valuesOf(names) : [],
    typeOnly: type !== undefined,
  }));
  const calls = [...text.matchAll(CALL)].map(([, to = '']) => ({
    from: file,
    to: resolved(file, to),
    values: [],
    typeOnly: false,
  }));
  return [...statements, ...calls];
}

/** Everything that `entry` loads: its files, and the packages that they name. */
export function loadedBy(entry: string, imports: readonly Import[]): ReadonlySet<string> {
  const loaded = new Set<string>();
  const waiting = [entry];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (loaded.has(next)) continue;
    loaded.add(next);
    waiting.push(...imports.filter(({ from, typeOnly }) => from === next && !typeOnly).map(({ to }) => to));
  }
  return loaded;
}

/** The circles in which files import each other, types too, each from its first file back to it. */
export function circles(imports: readonly Import[]): string[] {
  const next = new Map<string, string[]>();
  for (const { from, to } of imports) next.set(from, [...(next.get(from) ?? []), to]);
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) found.push([...path.slice(path.indexOf(file)), file].join(' -> '));
    if (done.has(file)) return;
    done.add(file);
    for (const to of next.get(file) ?? []) visit(to, [...path, file]);
  };
  for (const file of next.keys()) visit(file, []);
  return found;
}

/** The same for folders: the imports between the files of two folders are one import. */
export function folderCircles(imports: readonly Import[]): string[] {
  const edges = imports
    .filter(({ to }) => /\.tsx?$/.test(to))
    .map(({ from, to }) => ({ from: posix.dirname(from), to: posix.dirname(to) }))
    .filter(({ from, to }) => from !== to);
  const once = new Map(edges.map((edge) => [`${edge.from} ${edge.to}`, edge]));
  return circles([...once.values()].map((edge) => ({ ...edge, values: [], typeOnly: false })));
}

function resolved(file: string, to: string): string {
  return to.startsWith('.') ? posix.join(posix.dirname(file), to) : to;
}

function valuesOf(names: string): string[] {
  return [...(/\{([^}]*)\}/.exec(names)?.[1] ?? '').split(',')]
    .map((name) => name.trim())
    .filter((name) => name !== '' && !name.startsWith('type '))
    .map((name) => name.replace(/ as .*/, ''));
}
