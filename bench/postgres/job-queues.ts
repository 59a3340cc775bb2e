import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PAYLOAD } from '../sql/events.ts';
import type { PostgresBenchDatabase } from './postgres-database.ts';

/** The last versions that run on Node.js 20. */
const VERSIONS = { 'graphile-worker': '0.16.6', 'pg-boss': '10.4.2' } as const;

/** A queue in a database, whose jobs only report that they ran. */
interface JobQueue {
  readonly fill: (jobs: number) => Promise<unknown>;
  /** Starts its workers. */
  readonly work: (onJob: () => void) => Promise<void>;
  readonly close: () => Promise<unknown>;
}

/** Opens a queue in a database. */
export type OpenJobQueue = (database: PostgresBenchDatabase) => Promise<JobQueue>;

/** Installs both packages in a temporary folder while `use` runs. No script of a package is run. */
export async function withJobQueues<T>(
  use: (queues: Readonly<Record<string, OpenJobQueue>>) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'mailroom-job-queues-'));
  try {
    await writeFile(join(folder, 'package.json'), '{ "private": true }\n');
    const specs = Object.entries(VERSIONS).map(([name, version]) => `${name}@${version}`);
    const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--save-exact'];
    await promisify(execFile)('npm', ['install', ...options, ...specs], { cwd: folder });
    return await use({
      [`graphile-worker ${VERSIONS['graphile-worker']}`]: (database) => graphileQueue(folder, database),
      [`pg-boss ${VERSIONS['pg-boss']}`]: (database) => bossQueue(folder, database),
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The calls at a time: those of a relay. */
const WORKERS = 16;

/** The used part of graphile-worker. */
interface Graphile {
  readonly Logger: new (log: () => () => void) => object;
  run(options: object): Promise<{ stop(): Promise<void> }>;
}

/** graphile-worker with its default claim, one job each. */
async function graphileQueue(folder: string, { url, pool }: PostgresBenchDatabase): Promise<JobQueue> {
  const { run, Logger } = requireFrom<Graphile>(folder, 'graphile-worker');
  const options = { connectionString: url, noHandleSignals: true, logger: new Logger(() => () => {}) };
  // Its start creates its schema.
  await (await run({ ...options, taskList: { none: () => {} } })).stop();
  let stop = async () => {};
  const payload = JSON.stringify(PAYLOAD);
  return {
    // Its function for many jobs: a call for each job takes longer the more jobs there are.
    fill: async (jobs) => {
      for (let left = jobs; left > 0; left -= 1_000)
        await pool.query(
          `SELECT count(*) FROM graphile_worker.add_jobs(ARRAY(SELECT json_populate_record(NULL::graphile_worker.job_spec,
            json_build_object('identifier', 'carry', 'payload', $1::json)) FROM generate_series(1, $2::int)))`,
          [payload, Math.min(1_000, left)],
        );
      await pool.query('ANALYZE');
    },
    work: async (onJob) => {
      const runner = await run({
        ...options,
        concurrency: WORKERS,
        maxPoolSize: WORKERS + 4,
        pollInterval: 100,
        taskList: { carry: onJob },
      });
      stop = () => runner.stop();
    },
    close: () => stop(),
  };
}

/** The used part of pg-boss. */
interface Boss {
  on(event: 'error', listener: () => void): void;
  start(): Promise<unknown>;
  createQueue(name: string): Promise<void>;
  insert(jobs: readonly object[]): Promise<unknown>;
  work(name: string, options: object, handler: (jobs: readonly unknown[]) => Promise<void>): Promise<unknown>;
  stop(options: object): Promise<void>;
}

/** pg-boss, which claims 100 jobs at a time, at its shortest interval. */
async function bossQueue(folder: string, { url }: PostgresBenchDatabase): Promise<JobQueue> {
  const PgBoss = requireFrom<new (options: object) => Boss>(folder, 'pg-boss');
  const boss = new PgBoss({ connectionString: url, max: WORKERS + 4 });
  boss.on('error', () => {});
  await boss.start();
  await boss.createQueue('carry');
  return {
    fill: async (jobs) => {
      for (let left = jobs; left > 0; left -= 1_000)
        await boss.insert(
          Array.from({ length: Math.min(1_000, left) }, () => ({ name: 'carry', data: PAYLOAD })),
        );
    },
    work: async (onJob) => {
      for (let worker = 0; worker < WORKERS; worker += 1)
        await boss.work('carry', { batchSize: 100, pollingIntervalSeconds: 0.5 }, async (jobs) => {
          for (const _ of jobs) onJob();
        });
    },
    close: () => boss.stop({ graceful: false, close: true }),
  };
}

function requireFrom<T>(folder: string, name: string): T {
  return createRequire(join(folder, 'package.json'))(name) as T;
}
