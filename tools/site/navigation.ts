import { readdirSync } from 'node:fs';
import type { DefaultTheme } from 'vitepress';

/** Sections of the sidebar: what a reader wants to do, and the pages for it. */
const SECTIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Start: {
    'Getting started': '/getting-started',
    Tutorial: '/tutorial',
    'Can I …?': '/can-i',
    Questions: '/questions',
    Comparison: '/comparison',
    'Coming from another outbox': '/coming-from',
  },
  Understand: {
    Concepts: '/concepts',
    Guarantees: '/guarantees',
    'Crash by crash': '/crashes',
    Cost: '/cost',
    Scaling: '/scaling',
    Glossary: '/glossary',
  },
  Build: {
    Recipes: '/recipes/',
    Testing: '/testing',
    'Without the CDK': '/without-cdk',
    Versions: '/versioning',
  },
  Operate: {
    Deploying: '/deploying',
    Operating: '/operating',
    'Web console': '/console',
    'Logs, metrics and traces': '/telemetry',
    Security: '/security',
  },
  Reference: { API: '/api/', 'The command': '/cli', 'Data model': '/data-model' },
  Project: {
    Decisions: '/adr/',
    Changelog: '/changelog',
    Roadmap: '/roadmap',
    Contributing: '/contributing',
    'Code of conduct': '/code-of-conduct',
    'Reporting vulnerabilities': '/reporting',
    Explorer: '/explorer',
    Chaos: '/chaos',
    Mutants: '/mutants',
    Benchmarks: '/benchmarks',
    'Local AWS': '/local-aws',
  },
};

/** Sections of the sidebar that start closed, and fold in what their folder contains. */
const FOLDERS: Readonly<Record<string, string>> = { '/recipes/': 'recipes', '/adr/': 'adr', '/api/': 'api' };

/** The bar at the top: the way into each section. */
export const NAV: DefaultTheme.NavItem[] = [
  { text: 'Start', link: '/getting-started' },
  { text: 'Understand', link: '/concepts' },
  { text: 'Build', link: '/recipes/' },
  { text: 'Operate', link: '/operating' },
  { text: 'Reference', link: '/api/' },
  { text: 'Decisions', link: '/adr/' },
];

/** The part of the home page above the README. */
export const HOME = {
  layout: 'home',
  hero: {
    name: 'Mailroom',
    text: 'Events that are neither lost nor duplicated',
    tagline:
      'A transactional outbox and a leased inbox for AWS: CDK constructs and a small TypeScript runtime.',
    actions: [
      { theme: 'brand', text: 'Getting started', link: '/getting-started' },
      { theme: 'alt', text: 'Concepts', link: '/concepts' },
      { theme: 'alt', text: 'Guarantees', link: '/guarantees' },
    ],
  },
};

/**
 * The sidebar: every section, with the pages that exist.
 *
 * @param docs - the folder of the pages
 * @param pages - whether the site has a page at an address
 * @param titleOf - the first heading of a page of docs/
 */
export function sidebar(
  docs: string,
  isPage: (address: string) => boolean,
  titleOf: (file: string) => string,
): DefaultTheme.SidebarItem[] {
  return Object.entries(SECTIONS).map(([text, pages]) => ({
    text,
    items: Object.entries(pages)
      .filter(([, link]) => isPage(link))
      .map(([text, link]) => ({ text, link, ...inside(docs, FOLDERS[link], titleOf) })),
  }));
}

/** The pages of a folder, folded in below its own page. */
function inside(
  docs: string,
  folder: string | undefined,
  titleOf: (file: string) => string,
): DefaultTheme.SidebarItem {
  if (folder === undefined) return {};
  const files = readdirSync(`${docs}/${folder}`).filter((file) => /^(?!README|index).*\.md$/.test(file));
  const items = files.sort().map((file) => ({
    text: titleOf(`${docs}/${folder}/${file}`),
    link: `/${folder}/${file.replace(/\.md$/, '')}`,
  }));
  return { items, collapsed: true };
}
