import { type OpenMysql, openMysql } from '../../../cli/deployment/mysql-database.ts';
import { mintEventId } from '../../../lambdas/runtime/store/event-id.ts';
import {
  ID,
  idParameter,
  KEY,
  NOW,
  TIME,
  textParameter,
} from '../../../lambdas/runtime/store/mysql/expressions.ts';
import { type Rig, startRig } from './rig.ts';

/** A migrated database, and as the command reaches it by the login of an operator. */
export interface Operated extends Rig {
  readonly open: OpenMysql;
  readonly urlOf: (login: string) => string;
}

/** The rights of an operator, as docs/mysql.md has them. */
const OPERATOR_GRANT = "GRANT SELECT, INSERT, UPDATE, DELETE ON mailroom.* TO 'ada'@'%'";

/** Starts a server with an operator, whose login is `ada`. */
export async function startOperated(
  name: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Operated> {
  const rig = await startRig(name, settings);
  await rig.pool.query("CREATE USER 'ada'@'%'");
  await rig.pool.query(OPERATOR_GRANT);
  const urlOf = (login: string) => `mysql://${login}@127.0.0.1:${rig.server.port}`;
  const open = await openMysql(urlOf('ada'));
  return {
    ...rig,
    open,
    urlOf,
    close: async () => {
      await open.end();
      await rig.close();
    },
  };
}

/** An event, in no state yet. */
export async function storedEvent({ rows }: Rig, at: number, aggregateId = '42'): Promise<string> {
  const eventId = mintEventId(at, 256);
  const envelope = {
    ...{ eventId, type: 'ThingHappened', version: 1, aggregateType: 'Thing', aggregateId },
    ...{ occurredAt: at, correlationId: eventId, data: { n: 1, name: "日本 🚀 \\ '" } },
  };
  await rows(
    `INSERT INTO mailroom.event (event_id, source, type, aggregate_type, aggregate_id, envelope) VALUES (${ID}, 'things', 'ThingHappened', 'Thing', ?, ?)`,
    idParameter(eventId),
    aggregateId,
    JSON.stringify(envelope),
  );
  return eventId;
}

/** An event that waits in the queue. */
export async function pendingEvent(rig: Rig, at = Date.now() - 60_000, dueAt = at): Promise<string> {
  const eventId = await storedEvent(rig, at);
  await rig.rows(
    `INSERT INTO mailroom.pending (event_id, due_at) VALUES (${ID}, ${TIME})`,
    idParameter(eventId),
    dueAt,
  );
  return eventId;
}

/** A DEAD event. */
export async function deadEvent(rig: Rig): Promise<string> {
  const eventId = await storedEvent(rig, Date.now() - 60_000);
  await rig.rows(
    `INSERT INTO mailroom.dead (event_id, dead_at, attempts, last_error, fingerprint) VALUES (${ID}, ${NOW}, 5, 'Detail is not valid', 'relay InvalidArgument')`,
    idParameter(eventId),
  );
  return eventId;
}

/** A PUBLISHED event. */
export async function publishedEvent(rig: Rig, at = Date.now() - 60_000): Promise<string> {
  const eventId = await storedEvent(rig, at);
  await rig.rows(
    `INSERT INTO mailroom.published (event_id, published_at) VALUES (${ID}, ${TIME})`,
    idParameter(eventId),
    at,
  );
  return eventId;
}

/** A message of the consumer `worker`. @param set - assignments of further columns */
export async function message(rig: Rig, eventId: string, status: string, set: string): Promise<void> {
  await rig.rows(
    `INSERT INTO mailroom.inbox SET consumer = 'worker', event_id = ${KEY}, type = 'ThingHappened', status = '${status}', changed_at = ${NOW}, ${set}`,
    textParameter(eventId),
  );
}

/** The tables in which an event is. */
export async function statesOf({ rows }: Rig, eventId: string): Promise<string[]> {
  const tables = ['pending', 'dead', 'published', 'discarded'];
  const each = tables.map(
    (table) => `SELECT '${table}' AS name FROM mailroom.${table} WHERE event_id = ${ID}`,
  );
  const found = await rows(each.join(' UNION ALL '), ...tables.map(() => idParameter(eventId)));
  return found.map(({ name }) => String(name)).toSorted();
}

/** The entries of the operations log. */
export async function logOf({ rows }: Rig) {
  return rows('SELECT operator, command, subject, reason FROM mailroom.operation ORDER BY at, subject');
}
