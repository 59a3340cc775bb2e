import { depthOf } from '../../../lambdas/runtime/operations/dead-letters.ts';
import type { QueueDepth, Queues } from '../../../lambdas/runtime/operations/queues.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { isDenied, isUnsupported } from '../../deployment/refusals.ts';
import type { BacklogHistory } from '../../deployment/resources.ts';
import { runChecks } from '../checks/check.ts';
import { flowChecks } from '../checks/checks.ts';
import { pausesOf } from '../checks/pauses.ts';
import { createBacklogMemory, NO_HISTORY } from './backlog-trend.ts';
import { createKeptReadings } from './kept-readings.ts';
import { BROKEN_KEPT_MS, KEPT_MS, readStatus, type StatusDeps, WIRING_KEPT_MS } from './read-status.ts';
import type { StatusReport } from './status-report.ts';

/** Reads the status again and again. */
export interface StatusReader {
  /** Reads the status. Parts of it may be kept from an earlier call: see {@link createStatusReader}. */
  read(): Promise<StatusReport>;
  /** Reads the depth of a queue, kept for 4 seconds; `undefined` if the queue does not exist. */
  depth(url: string): Promise<QueueDepth | undefined>;
  /** Makes the next call read everything. */
  forget(): void;
}

/** Queues change fastest. It is less than the interval of any reader, so that two readers of one moment share a call. */
const DEPTH_KEPT_MS = 4_000;

/**
 * Creates a reader for a status that is shown continuously: it reads the PENDING events, samples of events and the entries of consumers of other sources once a minute, the
 * wiring every 50 seconds, and both again after 10 seconds while they show a problem. Everything else is read on each call.
 *
 * @param isRepeated - `false`: it is read once, so nothing is read ahead. @default true
 *
 * @example
 * ```ts
 * const status = createStatusReader(deployment);
 * const { state } = await status.read();
 * ```
 */
export function createStatusReader(
  deployment: Pick<
    Deployment,
    'directory' | 'region' | 'table' | 'stored' | 'database' | 'queues' | 'resources' | 'clock'
  >,
  isRepeated = true,
): StatusReader {
  const { directory, region, table, stored, database, queues, resources, clock } = deployment;
  const { keep, forget } = createKeptReadings(clock);
  const memory = createBacklogMemory();
  const kept: Queues = {
    ...queues,
    depth: (url) =>
      keep(`depth ${url}`, DEPTH_KEPT_MS, async () => {
        const depth = await queues.depth(url);
        memory.note(url, depth.waiting, clock.now());
        return depth;
      }),
    receive: (url, options) => keep(`dead letters ${url}`, KEPT_MS, () => queues.receive(url, options)),
  };
  const pauses = pausesOf({ stored, queues: kept, clock });
  const wiring: StatusDeps['wiring'] = (sweep) =>
    keep(
      'wiring',
      ({ problems }) => (problems.length > 0 ? BROKEN_KEPT_MS : WIRING_KEPT_MS),
      () => runChecks(flowChecks({ directory, resources, pauses, database, ...sweep })),
    );
  const backlog = async (url: string) =>
    memory.with(url, await keep(`backlog ${url}`, KEPT_MS, () => backlogOf(resources, url)));
  return {
    read: () =>
      readStatus({
        directory,
        region,
        table,
        stored,
        readsDatabase: database?.engine,
        queues: kept,
        keep,
        isRepeated,
        backlog,
        wiring,
        now: clock.now(),
      }),
    depth: (url) => depthOf(kept, url),
    forget,
  };
}

/** The history of a queue, if it may be read. The wiring reports what may not: it reads metrics with the same action. */
async function backlogOf(resources: Deployment['resources'], url: string): Promise<BacklogHistory> {
  try {
    return await resources.backlog(url);
  } catch (error) {
    if (isDenied(error) || isUnsupported(error)) return NO_HISTORY;
    throw error;
  }
}
