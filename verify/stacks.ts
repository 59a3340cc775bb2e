import { rm } from 'node:fs/promises';
import { MailroomError } from '../lambdas/runtime/base/errors.ts';
import { type CdkRun, type Outputs, readOutputs, runCdk } from '../localstack/cdk-process.ts';
import { bootstrapLocal } from '../localstack/deploy.ts';
import { type DeployProgress, deployProgress } from '../localstack/deploy-progress.ts';
import { lastLines } from '../localstack/health.ts';
import { cdkEnvironment } from '../localstack/local-cdk.ts';
import { localFile, projectRoot } from '../localstack/workspace.ts';
import type { VerifyTarget } from './target.ts';

/** The number of stacks deployed or destroyed concurrently. */
const CONCURRENCY = 4;

/** The number of lines of CDK output that an error shows. */
const ERROR_LINES = 30;

/** The stacks of one deployment. */
export interface Stacks {
  /**
   * Deploys all stacks.
   *
   * @param signal - stops the CDK when it is aborted; what CloudFormation has begun continues until it is destroyed
   * @returns their outputs
   * @throws `DEPLOY_FAILED` with the last lines of the CDK's output
   */
  deploy(signal: AbortSignal): Promise<Outputs>;
  /**
   * Destroys all stacks, also those that are deployed only in part.
   *
   * @throws `DESTROY_FAILED` with the last lines of the CDK's output
   */
  destroy(): Promise<void>;
}

/**
 * The stacks of a deployment, through the project's own CDK.
 *
 * @param name - of the deployment, as `randomName` returns it
 */
export function stacksOf(target: VerifyTarget, name: string, progress: DeployProgress): Stacks {
  const outputsFile = localFile(`outputs-${name}.json`);
  const assembly = localFile(`cdk-${name}`);
  const run = ({ args, ...others }: Pick<CdkRun, 'args' | 'onLine' | 'signal'>) =>
    runCdk({
      ...others,
      cwd: projectRoot,
      env: environmentOf(target),
      args: [
        ...args,
        ...['--all', '--concurrency', String(CONCURRENCY)],
        ...(target.profile === undefined ? [] : ['--profile', target.profile]),
      ],
    });
  const app = [
    ...['--app', 'node --import tsx test/account/app.ts'],
    ...['--context', `verify=${name}`, '--output', assembly],
  ];
  return {
    deploy: async (signal) => {
      if (target.endpoint !== undefined) await bootstrapLocal({ endpoint: target.endpoint, ...progress });
      progress.onProgress?.('Building the functions and stacks');
      try {
        const { code, lines } = await run({
          args: [
            ...['deploy', '--require-approval', 'never', '--method', 'direct'],
            ...['--progress', 'events', '--outputs-file', outputsFile, ...app],
          ],
          onLine: deployProgress(progress),
          signal,
        });
        signal.throwIfAborted();
        if (code !== 0) throw failed('DEPLOY_FAILED', 'deploy', lines);
        return await readOutputs(outputsFile);
      } finally {
        await rm(outputsFile, { force: true });
      }
    },
    destroy: async () => {
      const destroy = () =>
        run({
          args: ['destroy', '--force', ...app],
          onLine: (line) => progress.onDetail?.(line.trim()),
          // In a process group of its own: Ctrl-C must not end it half-way.
          signal: new AbortController().signal,
        });
      const first = await destroy();
      // A resource that another one still used can be deleted now.
      const { code, lines } = first.code === 0 ? first : await destroy();
      await rm(assembly, { recursive: true, force: true });
      if (code !== 0) throw failed('DESTROY_FAILED', 'destroy', lines);
    },
  };
}

/** For AWS, the caller's environment, in which only the profile selects the account. */
function environmentOf({ endpoint }: VerifyTarget): Record<string, string | undefined> {
  if (endpoint !== undefined) return cdkEnvironment(endpoint);
  const { NODE_OPTIONS: _, ...kept } = process.env;
  return {
    ...kept,
    CDK_DISABLE_CLI_TELEMETRY: 'true',
    CDK_DISABLE_VERSION_CHECK: 'true',
    NODE_NO_WARNINGS: '1',
  };
}

function failed(code: string, what: string, lines: readonly string[]): MailroomError {
  return new MailroomError(
    code,
    `cdk ${what} failed. The last lines of its output:\n${lastLines(lines.join('\n'), ERROR_LINES)}`,
  );
}
