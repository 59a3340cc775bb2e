import { statSync } from 'node:fs';
import { relative } from 'node:path';
import type { MarkdownRenderer } from 'vitepress';
import { addressOf, pictureOf, type Repository } from './addresses.ts';
import { drawn } from './diagrams.ts';

/**
 * Makes VitePress read the repository's Markdown as GitHub does: links lead to pages or into the repository, pictures are the site's own, Mermaid is drawn,
 * and a code block named `file=…` shows its name.
 *
 * @param root - the repository's folder
 */
export function githubMarkdown(md: MarkdownRenderer, root: string, repository: Repository): void {
  md.core.ruler.push('repository_links', ({ tokens, env }) => {
    const from = relative(root, env.realPath ?? env.path);
    const kindOf = (path: string) => fileKind(`${root}/${path}`);
    for (const token of tokens.filter(({ type }) => type === 'html_block'))
      token.content = twoPictures(token.content, (source) => pictureOf(from, source, repository, kindOf));
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type === 'link_open')
        token.attrSet('href', addressOf(from, token.attrGet('href') ?? '', repository, kindOf));
      if (token.type === 'image')
        token.attrSet('src', pictureOf(from, token.attrGet('src') ?? '', repository, kindOf));
    }
  });
  const fence = md.renderer.rules.fence;
  md.renderer.rules.fence = (tokens, at, ...rest) => {
    const { info = '', content = '' } = tokens[at] ?? {};
    if (info.trim() === 'mermaid') return drawn(content);
    const file = /\bfile=(\S+)/.exec(info)?.[1];
    const title = file === undefined ? '' : `<p class="file-name" v-pre>${md.utils.escapeHtml(file)}</p>`;
    return title + (fence?.(tokens, at, ...rest) ?? '');
  };
}

/** A picture for each scheme of colors, as GitHub reads it: by the scheme of the system. */
const PICTURE =
  /<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\s*<img (alt="[^"]*") src="([^"]+)">\s*<\/picture>/g;

/**
 * Makes two images of a `<picture>`: the style sheet shows the one for the scheme of the site, which its reader can choose.
 *
 * @param sourceOf - the address of an image for the build
 * @throws Error If there is a `<picture>` of another form.
 * @example
 * twoPictures('<picture>…</picture>', (source) => source); // '<img class="light-only" …><img class="dark-only" …>'
 */
export function twoPictures(html: string, sourceOf: (source: string) => string): string {
  const made = html.replaceAll(
    PICTURE,
    (_, dark: string, alt: string, light: string) =>
      `<img class="light-only" ${alt} src="${sourceOf(light)}"><img class="dark-only" ${alt} src="${sourceOf(dark)}">`,
  );
  if (made.includes('<picture'))
    throw new Error(
      `"${made.trim()}" is not a picture that the site can show. Write a dark <source srcset>, then an <img alt src>, each on its line.`,
    );
  return made;
}

/**
 * The id of a heading, as GitHub makes it: lower case, spaces as `-`, without punctuation.
 *
 * @example
 * headingId('What is `why`?'); // 'what-is-why'
 */
export function headingId(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
}

function fileKind(path: string): 'file' | 'folder' | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found?.isDirectory() ? 'folder' : found?.isFile() ? 'file' : undefined;
}
