import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import {
  auditSettings,
  consumerSettings,
  heartbeatSettings,
  producerSettings,
  relaySettings,
} from '../../lambdas/runtime/base/config.ts';
import type { FunctionBundle } from '../../tools/pack/function-bundle.ts';

/** The time that a fresh process takes to import a bundle. */
export interface ImportTime {
  readonly wallMs: number;
  /** CPU time on all threads of the process: steadier than the elapsed time on a shared machine. */
  readonly cpuMs: number;
}

/** Imports the given file and prints the time it took, as JSON. */
const CHILD = `
const cpu = process.cpuUsage();
const start = performance.now();
const { handler } = await import(process.argv[1]);
const wallMs = performance.now() - start;
const { user, system } = process.cpuUsage(cpu);
if (typeof handler !== 'function') throw new Error('The bundle exports no handler');
console.log(JSON.stringify({ wallMs, cpuMs: (user + system) / 1_000 }));
process.exit();
`;

const producer = {
  tableName: 'Mailroom',
  service: 'bench',
  shards: 8,
  bornLeaseMs: 30_000,
  publishes: ['OrderPlaced'],
};

/** Environment variables that the app's functions read while they are imported. */
export const FUNCTION_ENVIRONMENT: Readonly<Record<string, string>> = {
  ...producerSettings.encode(producer),
  ...consumerSettings.encode({
    ...producer,
    consumer: 'bench',
    queueUrl: 'https://sqs.us-east-1.amazonaws.com/111122223333/bench',
    leaseMs: 60_000,
    visibilityTimeoutMs: 180_000,
    maxAttempts: 5,
    retryFirstMs: 2_000,
    retryLongestMs: 900_000,
    inboxRetentionDays: 35,
  }),
  ...relaySettings.encode({
    ...producer,
    busName: 'bench',
    sources: ['bench'],
    claimLeaseMs: 30_000,
    publishTimeoutMs: 5_000,
    maxAttempts: 10,
    publishedRetentionDays: 7,
    sweepEveryMs: 60_000,
  }),
  ...auditSettings.encode({ tableName: 'Mailroom', sinceMs: 3_600_000, everyMs: 900_000 }),
  ...heartbeatSettings.encode({ ...producer, everyMs: 300_000 }),
  BANK_FUNCTION_NAME: 'bank',
  BANK_TABLE: 'Bank',
  AWS_REGION: 'us-east-1',
  AWS_ACCESS_KEY_ID: 'bench',
  AWS_SECRET_ACCESS_KEY: 'bench',
  AWS_SESSION_TOKEN: 'bench',
  AWS_LAMBDA_FUNCTION_NAME: 'bench',
  AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
};

/**
 * Imports each bundle in a fresh `node`, one bundle after the other, `runs` times, so that a slow moment of the machine affects
 * all of them equally. They are in a folder without `node_modules`, as in Lambda.
 *
 * @param environments - environment variables in addition to {@link FUNCTION_ENVIRONMENT}, by the bundle's name
 * @returns the times of each run, by name
 */
export async function importRuns(
  bundles: readonly FunctionBundle[],
  runs: number,
  environments: Readonly<Record<string, NodeJS.ProcessEnv>> = {},
): Promise<ReadonlyMap<string, readonly ImportTime[]>> {
  return withFiles(bundles, async (folder) => {
    const times = new Map<string, ImportTime[]>(bundles.map(({ name }) => [name, []]));
    // The first round warms the file cache.
    for (let round = 0; round <= runs; round += 1) {
      for (const [name, taken] of times) {
        const env = { ...FUNCTION_ENVIRONMENT, ...environments[name] };
        const time = await importOnce(join(folder, `${name}.mjs`), env);
        if (round > 0) taken.push(time);
      }
    }
    return times;
  });
}

/** Writes bundles and their source maps to a temporary folder while `use` runs. */
export async function withFiles<T>(
  bundles: readonly FunctionBundle[],
  use: (folder: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'mailroom-bundles-'));
  try {
    for (const { name, code, sourceMap } of bundles) {
      await writeFile(join(folder, `${name}.mjs`), code);
      await writeFile(join(folder, `${name}.mjs.map`), sourceMap);
    }
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function importOnce(file: string, env: NodeJS.ProcessEnv): Promise<ImportTime> {
  const args = ['--input-type=module', '--eval', CHILD, pathToFileURL(file).href];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  return JSON.parse(stdout);
}

/** The median of each time. */
export function medians(times: readonly ImportTime[]): ImportTime {
  return {
    wallMs: median(times.map(({ wallMs }) => wallMs)),
    cpuMs: median(times.map(({ cpuMs }) => cpuMs)),
  };
}

/** The middle one of the values. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
