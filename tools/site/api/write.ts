import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { apiReport, ENTRIES } from './extraction.ts';
import { type ApiEntry, declarationsOf, entryPage } from './page.ts';

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
    execFileSync('npx', ['--no', '--', 'tsc', ...project], { cwd: root, stdio: 'inherit' });
    const entries: ApiEntry[] = [];
    for (const [page, { types, specifier, purpose }] of Object.entries(ENTRIES)) {
      const own = join(work, page);
      await mkdir(own);
      await apiReport(join(built, types), own);
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
