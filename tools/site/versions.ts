/** One version that the site has. */
export interface SiteVersion {
  /** `0.1.0`, or `next`. */
  readonly version: string;
  /** Its path on the server, with `/` at both ends. */
  readonly base: string;
}

const RELEASE = /^(\d+)\.(\d+)\.(\d+)(-.+)?$/;

/**
 * The version that a pushed tag or branch publishes.
 *
 * @param ref - `v0.1.0`, or `main`
 * @throws Error If it is neither.
 */
export function versionOf(ref: string): string {
  if (ref === 'main') return 'next';
  const version = ref.replace(/^v/, '');
  if (!ref.startsWith('v') || !RELEASE.test(version))
    throw new Error(`"${ref}" is not published: use main, or the tag of a release, such as v0.1.0.`);
  return version;
}

/** The newest release among the versions; undefined where there is none. A pre-release never counts. */
export function newest(versions: readonly string[]): string | undefined {
  return sorted(versions).find((version) => RELEASE.exec(version)?.[4] === undefined && version !== 'next');
}

/**
 * The menu of the versions: the newest release, which is at the root, then the older ones, and `next`.
 *
 * @param folders - the names of the site's folders; names that are not versions are left out
 * @param root - the site's path on the server
 * @example
 * versionMenu(['0.1.0', 'next', 'assets'], '/cdk-mailroom/').map(({ base }) => base); // ['/cdk-mailroom/', '/cdk-mailroom/next/']
 */
export function versionMenu(folders: readonly string[], root: string): SiteVersion[] {
  const versions = folders.filter((name) => name === 'next' || RELEASE.test(name));
  const latest = newest(versions);
  return sorted(versions).map((version) => ({
    version,
    base: version === latest ? root : `${root}${version}/`,
  }));
}

/** Kept beside the versions: the repository, and the domain that GitHub Pages stores in the branch. */
const NOT_BUILT = ['.git', 'CNAME'];

/**
 * The names at the root that a newer release replaces: all but the versions and what the build did not write.
 *
 * @param names - of the site's files and folders
 */
export function replacedAtRoot(names: readonly string[]): string[] {
  return names.filter((name) => !NOT_BUILT.includes(name) && name !== 'next' && !RELEASE.test(name));
}

/** Newest first; a pre-release after its release, `next` at the end. */
function sorted(versions: readonly string[]): string[] {
  const order = (version: string) => (version === 'next' ? '' : version.replace(/^[\d.]+$/, '$&-z'));
  return versions.toSorted((a, b) => order(b).localeCompare(order(a), 'en', { numeric: true }));
}
