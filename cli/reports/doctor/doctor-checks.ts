import { once } from '../../deployment/rows-reader.ts';
import { type CheckedParts, isDenied, readOnce, runChecks } from '../status/part-checks.ts';
import { wiringChecks } from '../status/wiring-report.ts';
import { consumerChecks } from './consumer-checks.ts';
import type { DeployedQueue, DeployedResources, DoctorDeps } from './deployed-resources.ts';
import { type DoctorProblem, urlsOf } from './doctor-problem.ts';
import { roleChecks } from './role-checks.ts';
import { sharedChecks } from './shared-checks.ts';

/** The result of {@link examine}. */
export interface Examination extends CheckedParts<DoctorProblem['problem']> {
  /** The number of checks that were made. */
  readonly checks: number;
  /** The checks that do not apply here, as sentences. */
  readonly skipped: readonly string[];
}

const NO_CLIENT = ['the package @aws-sdk/client-iam (npm install --save-dev @aws-sdk/client-iam)'];

/**
 * Makes all checks of a deployed Mailroom: those of `status`, and those of settings that no template can promise.
 *
 * @param progress - called after each check with the number of checks made, and of all
 */
export async function examine(
  deps: DoctorDeps,
  progress: (made: number, all: number) => void = () => {},
): Promise<Examination> {
  const reading = cached(deps);
  const queues = await readQueues(reading);
  const checks = [
    ...wiringChecks({ ...reading, queueArn: (url) => queues.get(url)?.arn }),
    ...sharedChecks(reading),
    ...deps.directory.consumers.flatMap((consumer) => consumerChecks(reading, consumer)),
    ...roleChecks(reading, queues),
  ];
  const { problems, notChecked } = await runChecks(checks, (made) => progress(made, checks.length));
  return {
    checks: checks.length,
    problems: withoutConsequences(problems),
    notChecked: [
      ...notChecked,
      ...(deps.roles === 'no-client' ? [{ needs: NO_CLIENT, parts: ['roles'] }] : []),
    ],
    skipped: deps.roles === 'local' ? ['roles: a local engine checks no policies'] : [],
  };
}

/** A sweep that cannot run is not reported as silent, too. */
function withoutConsequences(problems: readonly DoctorProblem[]) {
  const isExplained = problems.some(({ part, problem }) => part === 'sweep' && problem !== 'sweep-silent');
  return problems.filter(({ problem }) => problem !== 'sweep-silent' || !isExplained);
}

/** The dependencies, with everything that several checks need read once. */
function cached(deps: DoctorDeps): DoctorDeps {
  const { wiring, resources } = deps;
  const mappings = new Map<string, ReturnType<typeof wiring.mappings>>();
  const functions = new Map<string, ReturnType<DeployedResources['function']>>();
  const queues = new Map<string, ReturnType<DeployedResources['queue']>>();
  return {
    ...deps,
    wiring: { ...wiring, mappings: (name) => once(mappings, name, () => wiring.mappings(name)) },
    resources: {
      ...resources,
      table: readOnce(() => resources.table()),
      queue: (url) => once(queues, url, () => resources.queue(url)),
      function: (name) => once(functions, name, () => resources.function(name)),
    },
  };
}

/** The queues that exist and that the caller may read, by URL. */
async function readQueues({ directory, resources }: DoctorDeps): Promise<ReadonlyMap<string, DeployedQueue>> {
  const urls = [directory.mailroom.failureQueue, ...directory.consumers.flatMap(urlsOf)];
  const read = await Promise.all(
    urls.map(async (url) => {
      const queue = await resources.queue(url).catch((error: unknown) => {
        if (isDenied(error)) return undefined; // each check that needs it reports that
        throw error;
      });
      return [url, queue] as const;
    }),
  );
  return new Map(read.flatMap(([url, queue]) => (queue === undefined ? [] : [[url, queue] as const])));
}
