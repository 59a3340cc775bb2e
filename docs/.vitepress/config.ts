import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type DefaultTheme, defineConfigWithTheme } from 'vitepress';
import { NOT_PAGES, REWRITES } from '../../tools/site/addresses.ts';
import { githubMarkdown, headingId } from '../../tools/site/markdown.ts';
import { NAV, sidebar } from '../../tools/site/navigation.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { description, repository } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'));
const url = repository.url.replace(/^git\+|\.git$/g, '');

/** A release, such as `0.1.0`, or `next` for what is on main. The workflow sets both. */
const { DOCS_VERSION: version = 'next', DOCS_BASE: base = '/' } = process.env;
const ref = version === 'next' ? 'main' : `v${version}`;

const titleOf = (file: string) => /^# (.*)$/m.exec(readFileSync(file, 'utf8'))?.[1] ?? file;
const isPage = (address: string) =>
  [`docs${address}.md`, `docs${address}README.md`, `docs${address}index.md`].some((path) =>
    existsSync(`${root}/${path}`),
  ) || Object.values(REWRITES).includes(`${address.slice(1)}.md`);

/** What the menu of the versions reads, beside the theme's own. */
type ThemeConfig = DefaultTheme.Config & {
  readonly version: string;
  readonly versionsRoot: string | undefined;
};

export default defineConfigWithTheme<ThemeConfig>({
  title: 'Mailroom',
  description,
  lang: 'en-US',
  base,
  srcDir: '../',
  srcExclude: NOT_PAGES,
  rewrites: REWRITES,
  outDir: process.env.DOCS_OUT ?? `${root}/.local/site`,
  cacheDir: `${root}/.local/site-cache`,
  cleanUrls: true,
  // Read from the history, which a downloaded archive does not have.
  lastUpdated: existsSync(`${root}/.git`),
  markdown: {
    anchor: { slugify: headingId },
    config: (md) => githubMarkdown(md, root, { url, ref }),
  },
  transformPageData: (page) => {
    // The README is the home page: its first screen is the same on the site, on GitHub and on the package's page.
    if (page.relativePath === 'index.md') page.frontmatter.layout = 'home';
    // A generated page has no history and nothing to edit.
    if (page.filePath.startsWith('docs/api/')) page.frontmatter.editLink = false;
  },
  themeConfig: {
    version,
    versionsRoot: process.env.DOCS_VERSIONS_ROOT,
    nav: NAV,
    sidebar: sidebar(`${root}/docs`, isPage, titleOf),
    outline: { level: [2, 3] },
    search: { provider: 'local', options: { detailedView: true } },
    editLink: { pattern: `${url}/edit/main/:path`, text: 'Edit this page' },
    socialLinks: [{ icon: 'github', link: url }],
    externalLinkIcon: true,
  },
});
