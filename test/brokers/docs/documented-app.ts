import { readFileSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codeBlocks, firstAppFiles } from '../../docs/code-blocks.ts';
import { step } from '../../package/step.ts';
import { pack } from '../../package/tarball.ts';

const tsx = fileURLToPath(new URL('../../../node_modules/tsx/dist/cli.mjs', import.meta.url));

/** An app of the files that a page shows, word for word, with the package as it is published. */
export interface DocumentedApp {
  readonly folder: string;
  /** Runs a TypeScript file of it. @returns what it printed */
  readonly run: (file: string, variables: Readonly<Record<string, string>>) => Promise<string>;
  readonly change: (file: string, rewrite: (text: string) => string) => Promise<void>;
  /** The arguments with which Node.js runs a TypeScript file of it. */
  readonly argsOf: (file: string) => string[];
}

/**
 * Packs the package, and makes an app of a page's files and those of docs/getting-started.md.
 *
 * @param folder - below the repository, whose packages stand in for those that npm would install
 * @param page - such as `docs/sources.md`
 * @param more - other files of the app, such as one that calls what the page exports
 */
export async function documentedApp(
  folder: string,
  page: string,
  more: Readonly<Record<string, string>> = {},
): Promise<DocumentedApp> {
  const app = join(folder, page.replaceAll('/', '-'));
  const text = readFileSync(new URL(`../../../${page}`, import.meta.url), 'utf8');
  const shown = codeBlocks(text).flatMap(({ file, prelude, code }) =>
    file === undefined ? [] : [[file, (prelude?.code ?? '') + code] as const],
  );
  const files = { ...Object.fromEntries(firstAppFiles()), ...Object.fromEntries(shown), ...more };
  for (const [file, code] of Object.entries({ ...files, 'package.json': '{ "type": "module" }' })) {
    await mkdir(dirname(join(app, file)), { recursive: true });
    await writeFile(join(app, file), code);
  }
  const argsOf = (file: string) => [tsx, join(app, file)];
  return {
    folder: app,
    argsOf,
    change: async (file, rewrite) => {
      const path = join(app, file);
      await writeFile(path, rewrite(await readFile(path, 'utf8')));
    },
    run: async (file, variables) => await step(app, process.execPath, argsOf(file), variables),
  };
}

/** Packs the package into a folder below the repository, above the apps in it. */
export async function packed(folder: string): Promise<void> {
  await pack(folder);
}
