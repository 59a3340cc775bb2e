import { execFileSync } from 'node:child_process';
import { cp, readdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { newest, replacedAtRoot, versionMenu, versionOf } from './versions.ts';

/*
 * Builds this version into the folder of all versions: `tsx tools/site/publish.ts <folder> <path on the server> <tag or branch>`.
 * The newest release is built twice: under its version, and at the root.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const [folder = '', base = '', ref = ''] = process.argv.slice(2);
const pages = resolve(folder);
const version = versionOf(ref);

await build(`${base}${version}/`, join(pages, version));
const names = await readdir(pages);
// Before the first release, the root shows what is on main.
if (version === (newest(names) ?? 'next')) await renewRoot(names);
// A folder whose name begins with `_` is left out by GitHub otherwise.
await writeFile(join(pages, '.nojekyll'), '');
const versions = versionMenu(names, base);
await writeFile(join(pages, 'versions.json'), `${JSON.stringify({ versions }, undefined, 2)}\n`);

async function build(at: string, out: string): Promise<void> {
  const variables = { DOCS_VERSION: version, DOCS_BASE: at, DOCS_VERSIONS_ROOT: base, DOCS_OUT: out };
  await rm(out, { recursive: true, force: true });
  execFileSync('npm', ['run', 'docs:build'], {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, ...variables },
  });
}

async function renewRoot(names: readonly string[]): Promise<void> {
  for (const name of replacedAtRoot(names)) await rm(join(pages, name), { recursive: true });
  const out = join(ROOT, '.local', 'site-root');
  await build(base, out);
  await cp(out, pages, { recursive: true });
}
