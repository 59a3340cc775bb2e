import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { compileFunction } from 'node:vm';
import { errorMessage, isMailroomError, MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { isObject, jsonObject } from '../../../lambdas/runtime/base/json.ts';
import type { AnyEventDefinition } from '../../../lambdas/runtime/events/event.ts';
import { installCommand } from '../../terminal/install-command.ts';

/** The event definitions that a module exports. */
export interface Catalog {
  /** The name in the nearest package.json, or the name of the module's file. */
  readonly title: string;
  /** The version in the nearest package.json, or `0.0.0`. */
  readonly version: string;
  /** In the order of their sources and types. */
  readonly definitions: readonly AnyEventDefinition[];
}

/**
 * Loads a catalog module. TypeScript is transpiled by esbuild, without a check of its types; packages are loaded as they are.
 *
 * @param file - a path from the current folder
 * @throws `BAD_CATALOG` if it cannot be loaded, has no definitions, exports one only by default, or defines an event twice
 */
export async function loadCatalog(file: string): Promise<Catalog> {
  const path = resolve(file);
  const { default: unnamed, ...named } = await exportsOf(file, path);
  const definitions = [...new Set(Object.values(named).filter(isDefinition))];
  // The default export of a CommonJS module is an object with everything that it exports by name.
  const lost = [unnamed, ...Object.values(Object(unnamed))].filter(isDefinition);
  for (const { type } of lost.filter((one) => !definitions.includes(one)))
    throw bad(file, `exports the definition of ${type} only by default. ${BY_NAME}`);
  if (definitions.length === 0) {
    const names = Object.keys(named).join(', ') || 'nothing';
    throw bad(file, `has no event definitions: it exports ${names}. ${BY_NAME}`);
  }
  const sorted = definitions.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  for (const [index, one] of sorted.entries()) {
    if (index > 0 && nameOf(sorted[index - 1] ?? one) === nameOf(one))
      throw bad(file, `has two definitions of ${one.type} of ${one.source}. Keep one of them.`);
  }
  return { ...(await packageOf(path)), definitions: sorted };
}

const BY_NAME = 'Export each definition by name: `export const OrderPlaced = defineEvent({ … })`.';

function bad(file: string, problem: string): MailroomError {
  return new MailroomError('BAD_CATALOG', `The catalog ${file} ${problem}`);
}

function nameOf({ source, type }: AnyEventDefinition): string {
  return `${source}\n${type}`;
}

/** By its members: the module may load another copy of the package. */
function isDefinition(value: unknown): value is AnyEventDefinition {
  if (!isObject(value)) return false;
  const { source, type, aggregateType, version, create, schema } = value;
  const texts = [source, type, aggregateType].every((text) => typeof text === 'string');
  return (
    texts && typeof version === 'number' && typeof create === 'function' && '~standard' in Object(schema)
  );
}

async function exportsOf(file: string, path: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return /\.[cm]?tsx?$/.test(path) ? await transpiled(path) : await import(pathToFileURL(path).href);
  } catch (error) {
    if (isMailroomError(error)) throw error;
    throw bad(file, `cannot be loaded: ${errorMessage(error).trim().replace(/\.$/, '')}.`);
  }
}

/** Bundles the module's own files, and runs them where the module is, so that they find its packages. */
async function transpiled(path: string): Promise<Readonly<Record<string, unknown>>> {
  const { build } = await import('esbuild').catch(() => {
    throw new MailroomError(
      'BAD_CATALOG',
      `The catalog ${basename(path)} is TypeScript, which needs esbuild, and esbuild is not installed. Run \`${installCommand(['esbuild'], { dev: true })}\`, or compile the module and name the .js file.`,
    );
  });
  const { outputFiles } = await build({
    entryPoints: [path],
    bundle: true,
    packages: 'external',
    format: 'cjs',
    platform: 'node',
    target: `node${process.versions.node}`,
    write: false,
    logLevel: 'silent',
  });
  const module = { exports: {} };
  const names = ['module', 'exports', 'require', '__filename', '__dirname'];
  const run = compileFunction(outputFiles[0]?.text ?? '', names, { filename: path });
  run(module, module.exports, createRequire(path), path, dirname(path));
  return module.exports;
}

async function packageOf(path: string): Promise<Pick<Catalog, 'title' | 'version'>> {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const found = jsonObject(await readFile(join(folder, 'package.json'), 'utf8').catch(() => undefined));
    if (typeof found?.name === 'string')
      return { title: found.name, version: typeof found.version === 'string' ? found.version : '0.0.0' };
    if (folder === dirname(folder)) return { title: basename(path), version: '0.0.0' };
  }
}
