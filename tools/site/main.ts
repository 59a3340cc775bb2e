import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { writeApi } from './api/write.ts';
import { brokenLinks } from './broken-links.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const API = `${ROOT}docs/api`;

/** The site, built. The workflow sets another folder for each version. */
const OUT = process.env.DOCS_OUT ?? `${ROOT}.local/site`;

/** `npm run docs` (serves the pages while they are written), `docs:build` and `docs:preview`. */
const ACTIONS: Readonly<Record<string, () => Promise<void>>> = {
  dev: async () => {
    // Takes half a minute; `npm run docs:build` renews it.
    if (!existsSync(API)) await writeApi(ROOT, API);
    vitepress('dev');
  },
  build: async () => {
    await writeApi(ROOT, API);
    vitepress('build');
    const broken = await brokenLinks(OUT, process.env.DOCS_BASE ?? '/');
    if (broken.length > 0) throw new Error(`Links of the site lead nowhere:\n${broken.join('\n')}`);
    console.log(`The site is in ${OUT}. To read it: npm run docs:preview`);
  },
  preview: async () => vitepress('preview'),
};

function vitepress(action: string): void {
  execFileSync('npx', ['--no', '--', 'vitepress', action, 'docs'], { cwd: ROOT, stdio: 'inherit' });
}

const [name = ''] = process.argv.slice(2);
const action = ACTIONS[name];
if (action === undefined)
  throw new Error(`"${name}" is not an action: use ${Object.keys(ACTIONS).join(', ')}.`);
await action();
