import { INBOX_RETENTION_MAX_DAYS } from '../../base/consumer-config.ts';
import { TOO_OLD } from '../../inbox/inbox-conditions.ts';

/** The names in a role's rows of `mailroom.login`: the services whose events a login writes, or the consumers whose inbox it has. */
const scopes = (role: 'producer' | 'consumer') =>
  `ARRAY(SELECT l.scope FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = '${role}')`;

/** This login has a role in this database. A role of PostgreSQL belongs to the cluster, a row of `mailroom.login` to the database. */
const has = (role: 'producer' | 'relay' | 'auditor' | 'operator') =>
  `EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = '${role}')`;

/** The event of a row is of a service of this login. */
const ofOwnEvent = (table: string) =>
  `EXISTS (SELECT FROM mailroom.event e WHERE e.event_id = ${table}.event_id AND e.source = ANY (${scopes('producer')}))`;

const OWN_SOURCE = `source = ANY (${scopes('producer')})`;

const OWN_CONSUMER = `consumer = ANY (${scopes('consumer')})`;

const PRODUCERS = 'TO mailroom_producer, mailroom_consumer';

/** The tables of which a relay and an operator see every row. What each may do with them is a matter of its grants. */
const TABLES = [
  'event',
  'pending',
  'published',
  'dead',
  'discarded',
  'cancelled',
  'commit',
  'inbox',
  'effect',
];

/** The tables that an audit reads, every row of each. */
export const AUDITED = [...TABLES.filter((table) => table !== 'commit'), 'inbox_retention'];

/** The tables of which an operator sees every row. */
const OPERATED = [...TABLES, 'operation', 'inbox_retention'];

/** An operator's decision is final, names the operator, and outlives every retention: after it, the message would run again. */
const DECIDED = `(status IN ('PROCESSED', 'DISCARDED') AND fence IS NOT NULL AND coalesce(resolved_by, discarded_by) IS NOT NULL
  AND expires_at > clock_timestamp() + interval '${INBOX_RETENTION_MAX_DAYS} days')`;

/** A message that an operator lets run although it is older than the retention. */
const ALLOWED = `(status = 'REJECTED' AND reason = '${TOO_OLD}' AND run_anyway AND allowed_by IS NOT NULL
  AND coalesce(resolved_by, discarded_by) IS NULL)`;

/**
 * An operator's decisions about messages. The conditions of a decision are those of its statement, which `transitionOf` makes.
 *
 * *Invariant: an operator changes an inbox row only to end its message, once, or to allow it, and the log has an entry with the name of
 * the login.* Workers never set these columns, so their updates call no trigger.
 */
const DECISIONS = `CREATE POLICY decide_absent ON mailroom.inbox FOR INSERT TO mailroom_operator WITH CHECK (${has('operator')} AND ${DECIDED});
CREATE POLICY decide ON mailroom.inbox FOR UPDATE TO mailroom_operator USING (${has('operator')} AND status NOT IN ('PROCESSED', 'DISCARDED'))
  WITH CHECK (${DECIDED} OR ${ALLOWED});
CREATE FUNCTION mailroom.record_decision() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
  INSERT INTO mailroom.operation (at, token, operator, command, subject, reason)
  VALUES (date_trunc('milliseconds', clock_timestamp()), gen_random_uuid()::text, session_user,
    CASE NEW.status WHEN 'PROCESSED' THEN 'postgres resolve' WHEN 'DISCARDED' THEN 'postgres discard' ELSE 'postgres allow' END,
    NEW.consumer || ' ' || NEW.event_id,
    coalesce(CASE NEW.status WHEN 'PROCESSED' THEN NEW.resolved_reason WHEN 'DISCARDED' THEN NEW.discarded_reason ELSE NEW.allowed_reason END, ''));
  RETURN NULL;
END
$function$;
CREATE TRIGGER decided AFTER UPDATE OF resolved_by, discarded_by, allowed_by ON mailroom.inbox
  FOR EACH ROW EXECUTE FUNCTION mailroom.record_decision();
CREATE TRIGGER decided_absent AFTER INSERT ON mailroom.inbox FOR EACH ROW
  WHEN (NEW.resolved_by IS NOT NULL OR NEW.discarded_by IS NOT NULL) EXECUTE FUNCTION mailroom.record_decision();
REVOKE ALL ON FUNCTION mailroom.record_decision FROM PUBLIC;`;

/**
 * An operator's change of events, with the rights of the owner.
 *
 * *Invariant: an event is changed if and only if the log has its entry, with the name of the login, and a call that is repeated with its
 * token changes nothing and returns the same ids.* The answer is read from the log by a second statement: the first may have waited for
 * the call whose answer was lost, and its snapshot does not contain what that one has written.
 *
 * @param more - further parameters, from `$4` on
 * @param changes - WITH queries; `changed` has the ids of those that it changes
 */
const changeOf = (name: string, changes: string, more = '') =>
  `CREATE FUNCTION mailroom.${name}(event_ids uuid[], reason text, token uuid DEFAULT gen_random_uuid()${more}) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
  IF NOT pg_has_role(session_user, current_user, 'USAGE')
    AND NOT EXISTS (SELECT FROM mailroom.login l WHERE l.login = session_user AND l.role = 'operator') THEN
    RAISE insufficient_privilege USING MESSAGE = 'This login is not an operator of the Mailroom in this database';
  END IF;
  WITH ${changes}
  INSERT INTO mailroom.operation (at, token, operator, command, subject, reason)
    SELECT date_trunc('milliseconds', clock_timestamp()), $3::text || '/' || changed.event_id::text, session_user, 'postgres ${name}', changed.event_id::text, $2
    FROM changed;
  RETURN QUERY SELECT o.subject::uuid FROM mailroom.operation o
    WHERE o.at > statement_timestamp() - interval '1 hour' AND starts_with(o.token, $3::text || '/');
END
$function$;`;

const OUT_OF_DEAD = `changed AS (
    DELETE FROM mailroom.dead d WHERE $1 IS NULL OR d.event_id = ANY ($1) RETURNING d.event_id
  )`;

/** The row of an event that was published says when it was sent again: the audit allows for its delivery. */
const RESENT = 'UPDATE mailroom.published p SET resent_at = clock_timestamp() WHERE p.event_id = ANY ($1)';

/**
 * The changes of an operator, as the transitions of the outbox decide them.
 *
 * An event is published again only if it was not sent since the operator has read when that was: of two operators, or two tries, one
 * queues it. The update of its row also keeps the relay from deleting the event as expired, or waits until it has.
 */
const CHANGES = [
  changeOf(
    'requeue',
    `${OUT_OF_DEAD}, queued AS (
    INSERT INTO mailroom.pending (event_id) SELECT changed.event_id FROM changed ON CONFLICT DO NOTHING
  )`,
  ),
  changeOf(
    'discard',
    `${OUT_OF_DEAD}, discarded AS (
    INSERT INTO mailroom.discarded (event_id, discarded_at, operator, reason)
    SELECT changed.event_id, clock_timestamp(), session_user, $2 FROM changed ON CONFLICT DO NOTHING
  )`,
  ),
  changeOf(
    'republish',
    `sent AS (
    ${RESENT} AND coalesce(p.resent_at, p.published_at) <= $4
      AND EXISTS (SELECT FROM mailroom.event e WHERE e.event_id = p.event_id)
      AND NOT EXISTS (SELECT FROM mailroom.dead d WHERE d.event_id = p.event_id)
      AND NOT EXISTS (SELECT FROM mailroom.discarded d WHERE d.event_id = p.event_id)
    RETURNING p.event_id
  ), changed AS (
    SELECT DISTINCT sent.event_id FROM sent
  ), queued AS (
    INSERT INTO mailroom.pending (event_id) SELECT changed.event_id FROM changed ON CONFLICT DO NOTHING
  )`,
    ", sent_until timestamptz DEFAULT 'infinity'",
  ),
  changeOf(
    'mark_resent',
    `sent AS (
    ${RESENT} RETURNING p.event_id
  ), changed AS (
    SELECT DISTINCT sent.event_id FROM sent
  )`,
  ),
].join('\n');

/**
 * The rows that a login may read and write, beside the tables that its role may. The owner of the tables and superusers see all rows.
 *
 * A subquery without a column of the row runs once for a statement. Functions with the rights of the owner set their search path,
 * and no text from a caller becomes a part of a statement.
 */
export const ROW_ACCESS = `CREATE TABLE mailroom.login (
  login name NOT NULL,
  role text NOT NULL CHECK (role IN ('producer', 'consumer', 'relay', 'auditor', 'operator')),
  scope text NOT NULL DEFAULT '',
  PRIMARY KEY (login, role, scope)
);
GRANT SELECT ON mailroom.login TO mailroom_producer, mailroom_relay, mailroom_consumer, mailroom_auditor, mailroom_operator;
${OPERATED.map((table) => `ALTER TABLE mailroom.${table} ENABLE ROW LEVEL SECURITY;`).join('\n')}
${TABLES.map((table) => `CREATE POLICY relay ON mailroom.${table} TO mailroom_relay USING (${has('relay')});`).join('\n')}
${AUDITED.map((table) => `CREATE POLICY auditor ON mailroom.${table} FOR SELECT TO mailroom_auditor USING (${has('auditor')});`).join('\n')}
${OPERATED.map((table) => `CREATE POLICY operator ON mailroom.${table} FOR SELECT TO mailroom_operator USING (${has('operator')});`).join('\n')}
CREATE POLICY own_insert ON mailroom.event FOR INSERT ${PRODUCERS} WITH CHECK (${OWN_SOURCE});
CREATE POLICY own_select ON mailroom.event FOR SELECT ${PRODUCERS} USING (${OWN_SOURCE});
CREATE POLICY own_insert ON mailroom.pending FOR INSERT ${PRODUCERS}
  WITH CHECK (fence IS NULL AND attempts = 0 AND last_error IS NULL AND ${has('producer')});
CREATE POLICY own_select ON mailroom.pending FOR SELECT ${PRODUCERS} USING (${ofOwnEvent('pending')});
CREATE POLICY own_delete ON mailroom.pending FOR DELETE ${PRODUCERS} USING (${ofOwnEvent('pending')});
CREATE POLICY own_insert ON mailroom.cancelled FOR INSERT ${PRODUCERS} WITH CHECK (${ofOwnEvent('cancelled')});
CREATE POLICY own_select ON mailroom.cancelled FOR SELECT ${PRODUCERS} USING (${ofOwnEvent('cancelled')});
CREATE POLICY own_insert ON mailroom.commit FOR INSERT ${PRODUCERS} WITH CHECK (${has('producer')});
CREATE POLICY own_select ON mailroom.commit FOR SELECT ${PRODUCERS} USING (${has('producer')});
CREATE POLICY own ON mailroom.inbox TO mailroom_consumer USING (${OWN_CONSUMER});
CREATE POLICY own ON mailroom.effect TO mailroom_consumer USING (${OWN_CONSUMER});
CREATE POLICY own ON mailroom.inbox_retention TO mailroom_consumer USING (${OWN_CONSUMER});
${DECISIONS}
${CHANGES}
CREATE FUNCTION mailroom.oldest_snapshot() RETURNS TABLE (pid integer, login name, app text, age_ms double precision)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
  SELECT a.pid, a.usename, a.application_name,
    CASE WHEN a.xact_start IS NOT NULL THEN greatest(0, extract(epoch FROM clock_timestamp() - a.xact_start)::float8 * 1000) END
  FROM pg_stat_activity a WHERE a.backend_xmin IS NOT NULL AND a.pid <> pg_backend_pid() AND a.datname = current_database()
    AND coalesce(a.backend_type, '') NOT IN ('autovacuum worker', 'walsender')
  ORDER BY a.xact_start NULLS FIRST LIMIT 1
$function$;
REVOKE ALL ON FUNCTION mailroom.requeue, mailroom.discard, mailroom.republish, mailroom.mark_resent, mailroom.oldest_snapshot FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mailroom.requeue, mailroom.discard, mailroom.republish, mailroom.mark_resent TO mailroom_operator;
GRANT EXECUTE ON FUNCTION mailroom.oldest_snapshot TO mailroom_relay, mailroom_operator;`;
