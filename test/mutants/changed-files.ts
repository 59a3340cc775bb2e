import { execFileSync } from 'node:child_process';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { ROOT } from './mutant.ts';

/** The commits to compare with, the first that exists and differs from the working tree. */
const BASES = ['origin/main', 'HEAD', 'HEAD~1'];

/**
 * The paths of the files that have changed since the working tree's branch left a commit's, from the root of the repository. New files count once
 * they are added to the index.
 *
 * @param ref - any name of a commit @default `origin/main`; the last commit if nothing has changed since `origin/main`
 * @throws `NO_SUCH_COMMIT` if Git does not find the commit
 */
export function changedSince(ref?: string): ReadonlySet<string> {
  if (ref === undefined)
    return new Set(BASES.map(diff).find((changed) => changed !== undefined && changed.length > 0));
  const changed = diff(ref);
  if (changed === undefined)
    throw new MailroomError('NO_SUCH_COMMIT', `Git finds no commit "${ref}" in ${ROOT}.`);
  return new Set(changed);
}

/** @returns `undefined` if there is no such commit */
function diff(ref: string): string[] | undefined {
  try {
    const args = ['diff', '--name-only', '--merge-base', '--end-of-options', ref, '--'];
    const output = execFileSync('git', args, {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return output.split('\n').filter((path) => path !== '');
  } catch {
    return undefined;
  }
}
