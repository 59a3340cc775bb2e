import pMap from 'p-map';
import { HEARTBEAT } from '../../events/heartbeat-event.ts';
import { eventIdTime, isEventId } from '../../store/event-id.ts';
import { HEARTBEAT_STATE_KEY } from '../../store/keys.ts';
import type { HeartbeatState } from '../../store/outbox-row.ts';
import { isUnreadable } from '../../store/stored-rows.ts';
import type { Table } from '../../store/table.ts';
import { RULE_DELAY_MS } from '../audit/audit-declaration.ts';
import type { Directory } from '../directory.ts';
import type { InboxRows } from '../inbox-rows.ts';
import { consumersOf } from '../subscribed-events.ts';

/** The maximum number of concurrent reads. */
const AT_ONCE = 16;

/** The event ids of the last heartbeats; absent if there were none. */
export type LastHeartbeats = Partial<Pick<HeartbeatState, 'latest' | 'previous'>>;

/** One heartbeat at the consumers that must acknowledge it. */
export interface HeartbeatReading {
  readonly eventId: string;
  /** Epoch milliseconds. */
  readonly sentAt: number;
  readonly acknowledged: readonly {
    readonly consumer: string;
    /** The time from its commit to the acknowledgement, milliseconds. */
    readonly afterMs: number;
  }[];
  /** The names of the consumers that have not acknowledged it. */
  readonly waiting: readonly string[];
}

/** Reads which heartbeats were sent last. Values that are not event ids were not written by Mailroom and are omitted. */
export async function readLastHeartbeats(table: Pick<Table, 'get'>): Promise<LastHeartbeats> {
  const { latest, previous } = (await table.get(HEARTBEAT_STATE_KEY, { consistent: true })) ?? {};
  return {
    latest: isEventId(latest) ? latest : undefined,
    previous: isEventId(previous) ? previous : undefined,
  };
}

/**
 * Reads which consumers acknowledged a heartbeat. A consumer must acknowledge it if its directory entry declared heartbeats, and had
 * not changed for the time that a new rule needs: so neither an older consumer nor one that is being deployed is late.
 */
export async function readHeartbeat(
  inbox: Pick<InboxRows, 'byEvent'>,
  directory: Directory,
  eventId: string,
): Promise<HeartbeatReading> {
  const sentAt = eventIdTime(eventId);
  const consumers = consumersOf(directory, { ...HEARTBEAT, data: () => ({}) }).filter(
    ({ changedAt = 0 }) => changedAt === 0 || sentAt >= changedAt + RULE_DELAY_MS,
  );
  const read = await pMap(
    consumers,
    async ({ name }) => {
      const row = await inbox.byEvent(name, eventId, true);
      const done = row !== undefined && !isUnreadable(row) && row.status === 'PROCESSED';
      return { name, doneAt: done ? row.processedAt : undefined };
    },
    { concurrency: AT_ONCE },
  );
  return {
    eventId,
    sentAt,
    acknowledged: read.flatMap(({ name, doneAt }) =>
      doneAt === undefined ? [] : [{ consumer: name, afterMs: Math.max(0, doneAt - sentAt) }],
    ),
    waiting: read.flatMap(({ name, doneAt }) => (doneAt === undefined ? [name] : [])),
  };
}
