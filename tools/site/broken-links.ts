import { readdir, readFile } from 'node:fs/promises';
import { join, posix } from 'node:path';

/**
 * The links of a built site that lead to a page, a heading or a file that it does not have. VitePress itself checks pages only.
 *
 * @param folder - the built site
 * @param base - its path on the server, with `/` at both ends
 * @returns a line for each, with its page
 * @throws Error If there is no page.
 */
export async function brokenLinks(folder: string, base: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => posix.relative(folder, join(parentPath, name)));
  const pages = new Map<string, { readonly ids: ReadonlySet<string>; readonly links: readonly string[] }>();
  for (const file of files.filter((file) => file.endsWith('.html')))
    pages.set(file, partsOf(await readFile(join(folder, file), 'utf8')));
  if (pages.size === 0) throw new Error(`${folder} has no page. Run npm run docs:build.`);
  return [...pages].flatMap(([page, { links }]) =>
    links.filter((link) => !leadsSomewhere(page, link)).map((link) => `${page}: ${link}`),
  );

  function leadsSomewhere(page: string, link: string): boolean {
    const { pathname, hash } = new URL(
      link,
      `http://site${base}${page.replace(/(?:(?<=^|\/)index)?\.html$/, '')}`,
    );
    // Another version's, or not the site's.
    if (!pathname.startsWith(base)) return false;
    const path = decodeURI(pathname.slice(base.length));
    const target = [path, `${path}.html`, posix.join(path, 'index.html')].find((file) =>
      files.includes(file),
    );
    if (target === undefined) return false;
    return hash === '' || pages.get(target)?.ids.has(decodeURIComponent(hash.slice(1))) === true;
  }
}

/** The names that a page can be entered by, and its links within the site. */
function partsOf(html: string): { readonly ids: ReadonlySet<string>; readonly links: readonly string[] } {
  const unquoted = (text = '') => text.replaceAll('&amp;', '&').replaceAll('&#39;', "'");
  const ids = [...html.matchAll(/ id="([^"]*)"/g)].map(([, id]) => unquoted(id));
  const links = [...html.matchAll(/<(?:a|img|link|script)\b[^>]* (?:href|src)="([^"]*)"/g)].map(([, link]) =>
    unquoted(link),
  );
  return { ids: new Set(ids), links: links.filter((link) => !/^(?:[a-z][a-z+.-]*:|\/\/)/i.test(link)) };
}
