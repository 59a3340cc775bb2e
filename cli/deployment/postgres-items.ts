import { eventIdShard, eventIdTime, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { deadKey, failedKey, inboxKey, operationKey, rejectedKey } from '../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';

/** A time as epoch milliseconds. */
function ms(time: string): string {
  return `round(extract(epoch FROM ${time})::float8 * 1000::float8)`;
}

const STATUS = `CASE WHEN q.event_id IS NOT NULL THEN 'PENDING' WHEN d.event_id IS NOT NULL THEN 'DEAD'
  WHEN p.published_at IS NOT NULL THEN 'PUBLISHED' WHEN c.event_id IS NOT NULL THEN 'CANCELLED' ELSE 'LOST' END`;

/** Events as outbox rows. One that is neither waiting, dead nor published has a status that no reader knows, so it is reported. */
export const OUTBOX = {
  select: `SELECT e.event_id::text AS id, e.source, e.type, e.trace_id AS "traceId", e.envelope, ${STATUS} AS status,
    coalesce(q.attempts, d.attempts, 0) AS attempts, ${ms('q.due_at')} AS "dueAt", ${ms('d.dead_at')} AS "deadAt",
    ${ms('p.published_at')} AS "publishedAt", ${ms('c.cancelled_at')} AS "cancelledAt", q.fence, coalesce(q.last_error, d.last_error) AS "lastError", d.fingerprint
    FROM mailroom.event e LEFT JOIN mailroom.pending q USING (event_id) LEFT JOIN mailroom.dead d USING (event_id)
    LEFT JOIN mailroom.cancelled c USING (event_id)
    LEFT JOIN LATERAL (SELECT max(published_at) AS published_at FROM mailroom.published WHERE event_id = e.event_id) p ON true`,
  /** Conditions for a status. */
  where: {
    PENDING: 'q.event_id IS NOT NULL',
    DEAD: 'd.event_id IS NOT NULL',
    PUBLISHED: 'p.published_at IS NOT NULL',
  },
  item: ({
    id,
    dueAt,
    publishedAt,
    deadAt,
    cancelledAt,
    lastError,
    fingerprint,
    fence,
    ...row
  }: Item): Item => {
    const eventId = String(id);
    // The id of a scheduled event has its due time, which a claim moves.
    const isScheduled = cancelledAt !== null || (fence === null && dueAt === eventIdTime(eventId));
    return present({
      ...outboxKeyOf(eventId),
      schema: SCHEMA,
      ...row,
      leaseUntil: dueAt ?? deadAt ?? publishedAt ?? 0,
      ...(isScheduled && { dueAt: eventIdTime(eventId) }),
      publishedAt,
      publishedBy: row.status === 'PUBLISHED' ? 'relay' : undefined,
      deadAt,
      cancelledAt,
      lastError,
      fingerprint: fingerprint ?? (lastError && `relay: ${lastError}`),
    });
  },
};

/** DEAD events as their pointers. */
export const DEAD = {
  select: `SELECT d.event_id::text AS id, ${ms('d.dead_at')} AS "deadAt", coalesce(e.type, 'unknown') AS type, d.last_error AS "lastError",
    d.fingerprint FROM mailroom.dead d LEFT JOIN mailroom.event e USING (event_id)`,
  item: ({ id, ...row }: Item): Item => ({
    ...deadKey(eventIdShard(String(id)), String(id)),
    schema: SCHEMA,
    ...row,
  }),
};

const EFFECTS = `(SELECT pg_catalog.json_object_agg(e.name, pg_catalog.json_strip_nulls(pg_catalog.json_build_object('status', e.status, 'fence', e.fence, 'run', e.run,
    'endsBy', ${ms('e.ends_by')}, 'startedAt', ${ms('e.started_at')}, 'result', e.result, 'error', e.error,
    'nothingHappened', e.nothing_happened, CASE e.status WHEN 'COMPLETED' THEN 'completedAt' ELSE 'endedAt' END, ${ms('e.ended_at')})))
  FROM mailroom.effect e WHERE e.consumer = i.consumer AND e.event_id = i.event_id)::text`;

/** Inbox rows. */
export const INBOX = {
  select: `SELECT i.consumer, i.event_id AS id, i.type, i.status, i.fence, i.attempts, i.unfinished, i.out_of_time AS "outOfTime",
    ${ms('i.claimed_at')} AS "claimedAt", ${ms('i.lease_until')} AS "leaseUntil", ${ms('i.ends_by')} AS "endsBy", ${ms('i.retry_at')} AS "retryAt",
    ${ms('i.processed_at')} AS "processedAt", ${ms('i.rejected_at')} AS "rejectedAt", i.rejected_ids AS "rejectedIds", i.reason,
    i.last_error AS "lastError", i.fingerprint, i.past_attempts AS past, i.result, ceil(extract(epoch FROM i.expires_at))::float8 AS "expiresAt",
    ${ms('i.changed_at')} AS "changedAt", ${EFFECTS} AS effects FROM mailroom.inbox i`,
  item: ({
    consumer,
    id,
    past,
    effects,
    rejectedIds,
    outOfTime,
    unfinished,
    changedAt,
    ...row
  }: Item): Item =>
    present({
      ...inboxKey(String(consumer), String(id)),
      schema: SCHEMA,
      ...row,
      fence: row.fence ?? '',
      rejectedIds: rejectedIds?.length > 0 ? new Set(rejectedIds) : undefined,
      outOfTime: outOfTime || undefined,
      unfinished: unfinished || undefined,
      processedAt: row.processedAt ?? (row.status === 'PROCESSED' ? changedAt : undefined),
      discardedAt: row.status === 'DISCARDED' ? changedAt : undefined,
      pastAttempts: past === null ? undefined : JSON.parse(past),
      effects: effects === null ? {} : JSON.parse(effects),
    }),
};

/** Rejected messages as their pointers. */
export const REJECTED = {
  select: `SELECT i.consumer, i.event_id AS id, coalesce(${ms('i.rejected_at')}, ${ms('i.changed_at')}) AS "rejectedAt", coalesce(i.reason, 'unknown') AS reason,
    coalesce(i.last_error, '') AS "lastError", coalesce(i.fingerprint, '') AS fingerprint,
    ceil(extract(epoch FROM i.expires_at))::float8 AS "expiresAt" FROM mailroom.inbox i`,
  item: ({ consumer, id, ...row }: Item): Item =>
    present({ ...rejectedKey(String(consumer), String(id)), schema: SCHEMA, ...row }),
};

/** Messages that are not settled, as the hints at failures. */
export const WAITING = {
  select: `SELECT i.consumer, i.event_id AS id, ${ms('i.changed_at')} AS "failedAt" FROM mailroom.inbox i`,
  item: ({ consumer, id, failedAt }: Item): Item => ({
    ...failedKey(String(consumer), String(id)),
    schema: SCHEMA,
    failedAt,
    expiresAt: Math.ceil(Number(failedAt) / 1_000),
  }),
};

/** The changes of operators. */
export const OPERATION = {
  select: `SELECT ${ms('o.at')} AS at, o.token, o.operator AS by, o.command, o.subject, o.reason FROM mailroom.operation o`,
  item: ({ token, ...row }: Item): Item => ({
    ...operationKey(row.at, token),
    schema: SCHEMA,
    ...row,
    // They are not deleted.
    expiresAt: Math.ceil(row.at / 1_000),
  }),
};

/** An item without the attributes that its row does not have. */
function present(item: Item): Item {
  return Object.fromEntries(
    Object.entries(item).filter(([, value]) => value !== null && value !== undefined),
  );
}
