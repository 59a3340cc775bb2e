import { execFileSync } from 'node:child_process';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { ROOT } from './mutant.ts';

/**
 * The paths of the files that have changed since the working tree's branch left a commit's, from the root of the repository. New files count once
 * they are added to the index.
 *
 * @param ref - any name of a commit @default `origin/main`; the last commit if nothing has changed since `origin/main`
 * @throws `NO_SUCH_COMMIT` if Git does not find the commit
 */
export function changedSince(ref?: string): readonly string[] {
  const refs = ref === undefined ? ['origin/main', 'HEAD', 'HEAD~1'] : [ref];
  const diffs = refs.map(diff).filter((changed) => changed !== undefined);
  if (ref !== undefined && diffs.length === 0)
    throw new MailroomError('NO_SUCH_COMMIT', `Git finds no commit "${ref}" in ${ROOT}.`);
  return diffs.find((changed) => changed.length > 0) ?? [];
}

/** @returns `undefined` if there is no such commit */
function diff(ref: string): string[] | undefined {
  const args = ['diff', '--name-only', '--merge-base', '--end-of-options', ref, '--'];
  try {
    const output = execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' });
    return output.split('\n').filter((path) => path !== '');
  } catch {
    return undefined;
  }
}
