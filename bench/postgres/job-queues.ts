import { createRequire } from 'node:module';
import { join } from 'node:path';
import { withPackages } from '../peers/packages.ts';
import { type BenchDatabase, PAYLOAD } from './database.ts';

/** The last versions that run on Node.js 20. */
export const JOB_QUEUES = { 'graphile-worker': '0.16.6', 'pg-boss': '10.4.2' } as const;

/** A queue in a database, whose jobs do nothing but say that they ran. */
export interface JobQueue {
  readonly fill: (jobs: number) => Promise<unknown>;
  readonly add: () => Promise<unknown>;
  /** Starts its workers. @param onJob - receives the time at which the job was added, epoch milliseconds */
  readonly work: (onJob: (addedAt: number) => void) => Promise<void>;
  readonly close: () => Promise<unknown>;
}

/** Installs both packages in a temporary folder while `use` runs. */
export function withJobQueues<T>(use: (folder: string) => Promise<T>): Promise<T> {
  return withPackages(
    Object.entries(JOB_QUEUES).map(([name, version]) => `${name}@${version}`),
    use,
  );
}

/** The calls at a time: those of a relay. */
const WORKERS = 16;

/** The used part of graphile-worker. */
interface Graphile {
  readonly Logger: new (log: () => () => void) => object;
  run(options: object): Promise<{ stop(): Promise<void> }>;
}

/** graphile-worker with its default claim, one job each. */
export async function graphileQueue(folder: string, { url, pool }: BenchDatabase): Promise<JobQueue> {
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
    add: () =>
      pool.query(`SELECT graphile_worker.add_job('carry', $1::json)`, [
        JSON.stringify({ ...PAYLOAD, addedAt: Date.now() }),
      ]),
    work: async (onJob) => {
      const carry = ({ addedAt = 0 }: { readonly addedAt?: number }) => onJob(addedAt);
      const runner = await run({
        ...options,
        concurrency: WORKERS,
        maxPoolSize: WORKERS + 4,
        pollInterval: 100,
        taskList: { carry },
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
  send(name: string, data: object): Promise<unknown>;
  work(
    name: string,
    options: object,
    handler: (jobs: readonly { readonly data: { readonly addedAt?: number } }[]) => Promise<void>,
  ): Promise<unknown>;
  stop(options: object): Promise<void>;
}

/** pg-boss, which claims 100 jobs at a time, at its shortest interval. */
export async function bossQueue(folder: string, { url }: BenchDatabase): Promise<JobQueue> {
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
    add: () => boss.send('carry', { ...PAYLOAD, addedAt: Date.now() }),
    work: async (onJob) => {
      for (let worker = 0; worker < WORKERS; worker += 1)
        await boss.work('carry', { batchSize: 100, pollingIntervalSeconds: 0.5 }, async (jobs) => {
          for (const { data } of jobs) onJob(data.addedAt ?? 0);
        });
    },
    close: () => boss.stop({ graceful: false, close: true }),
  };
}

function requireFrom<T>(folder: string, name: string): T {
  return createRequire(join(folder, 'package.json'))(name) as T;
}
