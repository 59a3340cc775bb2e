import { readdirSync } from 'node:fs';
import type { DefaultTheme } from 'vitepress';

/** Sections of the sidebar: what a reader wants to do, and the pages for it. */
const SECTIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Adopt: {
    'Getting started': '/getting-started',
    Tutorial: '/tutorial',
    FAQ: '/faq',
    Comparison: '/comparison',
    'Coming from another outbox': '/coming-from',
    Recipes: '/recipes/',
    Testing: '/testing',
    'Without the CDK': '/without-cdk',
    PostgreSQL: '/postgres',
    MySQL: '/mysql',
    'Other queues': '/queues',
    'Other sources': '/sources',
    Cost: '/cost',
    Versions: '/versioning',
  },
  Operate: {
    Deploying: '/deploying',
    Operating: '/operating',
    Errors: '/errors',
    'The command': '/cli',
    'Command options': '/cli-options',
    'JSON output': '/cli-json',
    'Command permissions': '/cli-permissions',
    'Web console': '/console',
    'Logs, metrics and traces': '/telemetry',
    Scaling: '/scaling',
    Security: '/security',
    'IAM permissions': '/iam-roles',
    'cdk-nag findings': '/nag-findings',
  },
  Understand: {
    Concepts: '/concepts',
    Guarantees: '/guarantees',
    'Crash by crash': '/crashes',
    'Crash points': '/crash-points',
    'Data model': '/data-model',
    'Stored items': '/stored-items',
    Glossary: '/glossary',
    API: '/api/',
    Decisions: '/adr/',
  },
  Contribute: {
    Contributing: '/contributing',
    Roadmap: '/roadmap',
    Changelog: '/changelog',
    Explorer: '/explorer',
    Chaos: '/chaos',
    Mutants: '/mutants',
    Benchmarks: '/benchmarks',
    'Local AWS': '/local-aws',
    'Code of conduct': '/code-of-conduct',
    'Reporting vulnerabilities': '/reporting',
  },
};

/** Sections of the sidebar that start closed, and fold in what their folder contains. */
const FOLDERS: Readonly<Record<string, string>> = { '/recipes/': 'recipes', '/adr/': 'adr', '/api/': 'api' };

/** The bar at the top: the way into each section. */
export const NAV: DefaultTheme.NavItem[] = [
  { text: 'Adopt', link: '/getting-started', activeMatch: matching('Adopt') },
  { text: 'Operate', link: '/operating', activeMatch: matching('Operate') },
  { text: 'Understand', link: '/concepts', activeMatch: matching('Understand') },
  { text: 'API', link: '/api/' },
];

/** A pattern for the addresses of a section's pages. */
function matching(section: string): string {
  return `^(?:${Object.values(SECTIONS[section] ?? {}).join('|')})`;
}

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
