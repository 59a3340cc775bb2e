import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import {
  type HeartbeatReading,
  readHeartbeat,
  readLastHeartbeats,
} from '../../../lambdas/runtime/operations/heartbeat/heartbeat-reading.ts';
import type { Table } from '../../../lambdas/runtime/store/table.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';
import { paint } from '../../terminal/paint.ts';
import { prose } from '../../terminal/prose.ts';
import { shell } from '../../terminal/shell.ts';
import { duration, time } from '../../terminal/times.ts';
import type { Checked } from '../checks/check.ts';
import type { CommandLines, Finding } from '../findings/findings.ts';
import type { Warning } from './consumer-warnings.ts';

/** The scheduled heartbeat, as `mailroom status --json` shows it. Times are epoch milliseconds; absent values are `null`. */
export interface HeartbeatStatus {
  /**
   * `ok`: the last one was acknowledged by all consumers, or still may be. `late`: a consumer has not acknowledged one although the next
   * is due. `silent`: none has been sent for over two intervals.
   */
  readonly state: 'ok' | 'late' | 'silent';
  /** The name of the function that sends it. */
  readonly function: string;
  /** The last heartbeat; `null` if none was sent. */
  readonly eventId: string | null;
  readonly sentAgoMs: number | null;
  /** The number of consumers that have acknowledged it, and the longest time that one took, milliseconds. */
  readonly acknowledged: number;
  readonly slowestMs: number;
  /** The consumers that have not acknowledged it. */
  readonly waiting: readonly string[];
  /** Those of them that are late, with the heartbeat that shows it. */
  readonly late: readonly {
    readonly consumer: string;
    readonly eventId: string;
    readonly sentAt: number;
  }[];
}

/** Dependencies of {@link readHeartbeatStatus}. */
interface HeartbeatDeps {
  readonly directory: Directory;
  readonly table: Pick<Table, 'get'>;
  readonly stored: Pick<StoredRows, 'inbox'>;
  readonly now: number;
}

/** Reads the last heartbeats. Returns `null` if none is scheduled. */
export async function readHeartbeatStatus(deps: HeartbeatDeps): Promise<HeartbeatStatus | null> {
  const { directory, table, stored, now } = deps;
  const { heartbeat, changedAt = 0 } = directory.mailroom;
  if (heartbeat === undefined) return null;
  const { latest, previous } = await readLastHeartbeats(table);
  const last = latest === undefined ? undefined : await readHeartbeat(stored.inbox, directory, latest);
  // The schedule may have been deployed just now, or changed.
  const isSilent = now - Math.max(last?.sentAt ?? 0, changedAt) > 2 * heartbeat.everyMs;
  const late = last === undefined ? [] : await lateAt(deps, last, previous, heartbeat.everyMs);
  const { acknowledged = [], waiting = [] } = last ?? {};
  return {
    state: isSilent ? 'silent' : late.length > 0 ? 'late' : 'ok',
    function: heartbeat.function,
    eventId: latest ?? null,
    sentAgoMs: last === undefined ? null : Math.max(0, now - last.sentAt),
    acknowledged: acknowledged.length,
    slowestMs: Math.max(0, ...acknowledged.map(({ afterMs }) => afterMs)),
    waiting,
    late,
  };
}

/** A consumer that has acknowledged the last heartbeat is not late, even if the one before it was lost. */
async function lateAt(
  { directory, stored, now }: HeartbeatDeps,
  last: HeartbeatReading,
  previous: string | undefined,
  everyMs: number,
): Promise<HeartbeatStatus['late']> {
  if (last.waiting.length === 0) return [];
  const isDue = now - last.sentAt >= everyMs;
  if (!isDue && previous === undefined) return [];
  const { eventId, sentAt, waiting } =
    isDue || previous === undefined ? last : await readHeartbeat(stored.inbox, directory, previous);
  return waiting
    .filter((consumer) => last.waiting.includes(consumer))
    .map((consumer) => ({ consumer, eventId, sentAt }));
}

/** The heartbeat as one line; none if none is scheduled. */
export function heartbeatText(heartbeat: HeartbeatStatus | null): string[] {
  if (heartbeat === null) return [];
  const line = `heartbeat ${sentText(heartbeat)}`;
  return [prose(heartbeat.state === 'ok' ? line : paint.yellow(line))];
}

function sentText({ sentAgoMs, acknowledged, slowestMs, waiting }: HeartbeatStatus): string {
  if (sentAgoMs === null) return 'not sent yet';
  const sent = `${duration(sentAgoMs)} ago`;
  if (waiting.length > 0) return `${sent}, not yet acknowledged by ${waiting.join(', ')}`;
  if (acknowledged === 0) return `${sent}, which no deployed consumer must acknowledge`;
  return `${sent}, acknowledged by ${acknowledged === 1 ? 'the consumer' : `all ${acknowledged} consumers`} within ${duration(slowestMs)}`;
}

/** The finding of a silent heartbeat, or one of each consumer that is late, unless the wiring or a warning explains it. */
export function heartbeatFindings(
  heartbeat: HeartbeatStatus | null,
  { wiring, looks }: { readonly wiring: Checked; readonly looks: readonly Warning[] },
  { awsLine, commandLine }: CommandLines,
): Finding[] {
  if (heartbeat === null || heartbeat.state === 'ok') return [];
  const known = new Set([
    ...wiring.problems.filter(({ level }) => level === 'flow').map(({ part }) => part),
    ...looks.map(({ consumer }) => consumer),
  ]);
  const { state, sentAgoMs } = heartbeat;
  if (state === 'silent') {
    if (known.has('heartbeat')) return [];
    const since = sentAgoMs === null ? 'since its deployment' : `for ${duration(sentAgoMs)}`;
    const what = `no heartbeat was sent ${since}. Run its function to see its error`;
    const invoke = shell`lambda invoke --function-name ${heartbeat.function} /dev/stdout`;
    const commands = [awsLine(invoke)];
    return [{ state: 'look', code: 'heartbeat-silent', part: 'heartbeat', count: null, what, commands }];
  }
  const late = heartbeat.late.filter(({ consumer }) => !known.has(consumer));
  return late.map(({ consumer, eventId, sentAt }) => ({
    state: 'look',
    code: 'heartbeat-late',
    part: consumer,
    count: null,
    what: `heartbeat late: ${consumer} has not acknowledged the one of ${time(sentAt)}`,
    commands: [commandLine(shell`why ${eventId}`)],
  }));
}
