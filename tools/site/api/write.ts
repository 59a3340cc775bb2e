import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { command } from '../command.ts';
import { declarationsOf } from './declarations.ts';
import { apiReport, ENTRIES } from './extraction.ts';
import { type Entry, entryPage } from './page.ts';

/** The page of each entry, by the name of its report: its file, what is imported, what it is for. */
const PAGES: Readonly<
  Record<keyof typeof ENTRIES, readonly [page: string, specifier: string, purpose: string]>
> = {
  constructs: ['constructs', 'cdk-mailroom', 'The constructs, for CDK apps.'],
  runtime: ['runtime', 'cdk-mailroom/runtime', 'The library that Lambda functions import.'],
  http: [
    'http',
    'cdk-mailroom/http',
    'HTTP requests that can be sent again, for Lambda functions and services.',
  ],
  testing: ['testing', 'cdk-mailroom/testing', 'In-memory doubles and the explorer, for tests.'],
  internals: [
    'internals',
    'cdk-mailroom/internals',
    'Parts for tools that read or write the table. They can change in a minor version.',
  ],
};

/**
 * Writes the API reference: a page for each entry of the package, and their index.
 *
 * @param root - the repository's folder
 * @param folder - is replaced
 * @throws Error If the sources do not compile.
 */
export async function writeApi(root: string, folder: string): Promise<void> {
  await mkdir(join(root, '.local'), { recursive: true });
  const work = await mkdtemp(join(root, '.local', 'api-model-'));
  try {
    const built = join(work, 'dist');
    const project = ['-p', 'tsconfig.api.json', '--outDir', built, '--declarationDir', built];
    await command(root, 'npx', ['--no', '--', 'tsc', ...project]);
    const entries: Entry[] = [];
    for (const [name, [page, specifier, purpose]] of Object.entries(PAGES)) {
      const own = join(work, name);
      await mkdir(own);
      await apiReport(join(built, ENTRIES[name as keyof typeof ENTRIES]), own);
      const declarations = declarationsOf(await readFile(join(own, 'model.api.json'), 'utf8'));
      entries.push({ page, specifier, purpose, declarations });
    }
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    for (const entry of entries) await writeFile(join(folder, `${entry.page}.md`), entryPage(entry, entries));
    const list = entries.map(({ page, specifier, purpose }) => `- [${specifier}](${page}.md): ${purpose}`);
    await writeFile(
      join(folder, 'README.md'),
      `# API\n\nEvery export of the package, by entry.\n\n${list.join('\n')}\n`,
    );
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
