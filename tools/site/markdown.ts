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
