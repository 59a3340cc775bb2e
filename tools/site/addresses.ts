import { posix } from 'node:path';

/** Pages outside docs/, by their paths in the repository: their files on the site. */
const OUTSIDE: Readonly<Record<string, string>> = {
  'README.md': 'index.md',
  'CHANGELOG.md': 'changelog.md',
  'CONTRIBUTING.md': 'contributing.md',
  'CODE_OF_CONDUCT.md': 'code-of-conduct.md',
  'SECURITY.md': 'reporting.md',
  'bench/README.md': 'benchmarks.md',
  'localstack/README.md': 'local-aws.md',
  'test/chaos/README.md': 'chaos.md',
  'test/explorer/crash-points.md': 'crash-points.md',
  'test/explorer/README.md': 'explorer.md',
  'test/mutants/README.md': 'mutants.md',
};

/** Markdown that is not a page, as globs of VitePress. */
export const NOT_PAGES = [
  '{bin,cli,coverage,demo,docs/examples,lambdas,lib,testing,tools,verify}/**',
  '{bench,localstack}/*/**',
  '{bench,localstack}/!(README).md',
  '**/cdk.out/**',
  'test/!(chaos|explorer|mutants)/**',
  'test/*/*/**',
];

/**
 * The file of a page on the site; undefined for a file of the repository that is not a page.
 *
 * @param path - from the repository's folder
 * @example
 * pageOf('docs/adr/README.md'); // 'adr/index.md'
 */
export function pageOf(path: string): string | undefined {
  const outside = OUTSIDE[path];
  if (outside !== undefined) return outside;
  if (!path.startsWith('docs/') || !path.endsWith('.md')) return undefined;
  return path.slice('docs/'.length).replace(/README\.md$/, 'index.md');
}

/** The pages of the repository as VitePress's rewrites: the file in the repository, then the file on the site. */
export const REWRITES: Readonly<Record<string, string>> = {
  ...OUTSIDE,
  'docs/:folder/README.md': ':folder/index.md',
  'docs/:path*': ':path*',
};

/** The target of links that leave the site. */
export interface Repository {
  /** Such as `https://github.com/cdk-mailroom/cdk-mailroom`. */
  readonly url: string;
  /** The tag or the branch of this version: `v0.1.0`, `main`. */
  readonly ref: string;
}

/**
 * The address on the site of what a page links to: another page, or a file of the repository at this version's tag. Addresses
 * with a scheme stay as they are.
 *
 * @param from - the page that links, from the repository's folder
 * @throws Error If the link leaves the repository, or names a file that `exists` denies; it names the page and the link.
 * @example
 * addressOf('docs/operating.md', '../../lib/mailroom.ts', repository, existsSync);
 * // 'https://github.com/cdk-mailroom/cdk-mailroom/blob/v0.1.0/lib/mailroom.ts'
 */
export function addressOf(
  from: string,
  link: string,
  repository: Repository,
  fileKind: (path: string) => 'file' | 'folder' | undefined,
): string {
  if (/^[a-z][a-z+.-]*:|^#|^\//i.test(link)) return link;
  const [path = '', fragment] = link.split('#');
  const target = posix.join(posix.dirname(from), decodeURI(path)).replace(/\/$/, '');
  const hash = fragment === undefined ? '' : `#${fragment}`;
  const kind = target.startsWith('..') ? undefined : fileKind(target);
  if (kind === undefined)
    throw new Error(`${from} links to "${link}", which the repository does not have. Correct the link.`);
  const page = pageOf(kind === 'folder' ? `${target}/README.md` : target);
  if (page !== undefined && (kind === 'file' || fileKind(`${target}/README.md`) === 'file'))
    return `/${page.replace(/(^|\/)index\.md$/, '$1')}${hash}`;
  return `${repository.url}/${kind === 'file' ? 'blob' : 'tree'}/${repository.ref}/${target}${hash}`;
}

/**
 * The address of a picture for the build: the file beside the page, also where the page names the repository's copy. The README does,
 * because npm shows it without the folder of the pictures.
 *
 * @param from - the page, from the repository's folder
 * @throws Error If the repository does not have the file; it names the page and the address.
 * @example
 * pictureOf('README.md', 'https://github.com/cdk-mailroom/cdk-mailroom/raw/main/docs/images/ui-flow.png', repository, fileKind);
 * // './docs/images/ui-flow.png'
 */
export function pictureOf(
  from: string,
  source: string,
  { url }: Pick<Repository, 'url'>,
  fileKind: (path: string) => 'file' | 'folder' | undefined,
): string {
  const own = `${url}/raw/main/`;
  if (!source.startsWith(own)) return source;
  const path = source.slice(own.length);
  if (fileKind(path) !== 'file')
    throw new Error(`${from} shows "${source}", which the repository does not have. Correct the address.`);
  const relative = posix.relative(posix.dirname(from), path);
  return relative.startsWith('.') ? relative : `./${relative}`;
}
