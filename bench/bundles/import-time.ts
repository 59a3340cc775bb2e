import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import {
  auditSettings,
  heartbeatSettings,
  producerSettings,
  relaySettings,
} from '../../lambdas/runtime/base/config.ts';
import { consumerSettings } from '../../lambdas/runtime/base/consumer-config.ts';
import { relayConfig } from '../../testing/default-config.ts';
import { consumerConfig, producerConfig } from '../../testing/index.ts';
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

const producer = producerConfig({ service: 'bench', publishes: ['OrderPlaced'] });
const queueUrl = 'https://sqs.us-east-1.amazonaws.com/111122223333/bench';

/** Environment variables that the app's functions read while they are imported. */
export const FUNCTION_ENVIRONMENT: Readonly<Record<string, string>> = {
  ...producerSettings.encode(producer),
  ...consumerSettings.encode(consumerConfig({ ...producer, queueUrl })),
  ...relaySettings.encode(relayConfig({ sources: ['bench'] })),
  ...auditSettings.encode({ tableName: 'Mailroom', sinceMs: 3_600_000, everyMs: 900_000 }),
  ...heartbeatSettings.encode({ ...producer, everyMs: 300_000 }),
  MAILROOM_MYSQL: 'mysql://bench@127.0.0.1/bench',
  MAILROOM_POSTGRES: 'postgresql://bench@127.0.0.1/bench',
  MAILROOM_POLL_MS: '200',
  BANK_FUNCTION_NAME: 'bank',
  PAY_WITHIN_SECONDS: '1800',
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
 * @returns the median times of each bundle
 */
export async function importTimes(bundles: readonly FunctionBundle[], runs: number): Promise<ImportTime[]> {
  return withFiles(bundles, async (folder) => {
    const times: ImportTime[][] = bundles.map(() => []);
    // The first round warms the file cache.
    for (let round = 0; round <= runs; round += 1) {
      for (const [index, { name }] of bundles.entries()) {
        const args = [
          '--input-type=module',
          '--eval',
          CHILD,
          pathToFileURL(join(folder, `${name}.mjs`)).href,
        ];
        const { stdout } = await promisify(execFile)(process.execPath, args, { env: FUNCTION_ENVIRONMENT });
        if (round > 0 || runs === 0) times[index]?.push(JSON.parse(stdout));
      }
    }
    return times.map((each) => ({
      wallMs: median(each.map(({ wallMs }) => wallMs)),
      cpuMs: median(each.map(({ cpuMs }) => cpuMs)),
    }));
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

/** The middle one of the values. */
function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
