/**
 * Change data capture: `published_by` is `cdc` for an event that is left to it, which has no row in `pending`.
 *
 * - A connector could not send a record without a key or with a longer one, and would stop there, so such an event is refused.
 * - `mailroom_connector` reads these events only, for the connector's snapshots. Row-level security does not apply to the log, which its publication filters.
 */
export const CAPTURE = `ALTER TABLE mailroom.event
  ADD COLUMN published_by text,
  ADD CONSTRAINT captured_event_has_a_key CHECK (published_by IS NULL OR (published_by = 'cdc'
    AND coalesce(octet_length(aggregate_type) BETWEEN 1 AND 1024, false) AND coalesce(octet_length(aggregate_id) BETWEEN 1 AND 1024, false))) NOT VALID;
CREATE INDEX event_captured ON mailroom.event (event_id) WHERE published_by = 'cdc';
CREATE TABLE mailroom.capture (
  slot name PRIMARY KEY,
  retention interval NOT NULL,
  since timestamptz NOT NULL,
  lsn pg_lsn NOT NULL,
  lsn_at timestamptz NOT NULL,
  captured_until timestamptz
);
ALTER TABLE mailroom.capture ENABLE ROW LEVEL SECURITY;
DO $roles$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'mailroom_connector') THEN
    CREATE ROLE mailroom_connector NOLOGIN;
  END IF;
END
$roles$;
ALTER TABLE mailroom.login DROP CONSTRAINT login_role_check,
  ADD CONSTRAINT login_role_check CHECK (role IN ('producer', 'consumer', 'relay', 'auditor', 'operator', 'connector'));
GRANT USAGE ON SCHEMA mailroom TO mailroom_connector;
GRANT SELECT ON mailroom.event, mailroom.login TO mailroom_connector;
GRANT SELECT ON mailroom.capture TO mailroom_auditor, mailroom_operator;
CREATE POLICY connector ON mailroom.event FOR SELECT TO mailroom_connector
  USING (published_by = 'cdc' AND EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'connector'));
CREATE POLICY auditor ON mailroom.capture FOR SELECT TO mailroom_auditor
  USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'auditor'));
CREATE POLICY operator ON mailroom.capture FOR SELECT TO mailroom_operator
  USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'operator'));
${deleteCaptured()}
REVOKE ALL ON FUNCTION mailroom.delete_captured FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mailroom.delete_captured TO mailroom_connector;`;

/**
 * The retention of captured events, which the connector runs with each of its heartbeats. A reading of the log's position is kept until the slot has
 * confirmed it; what was committed before that reading is then captured.
 *
 * *Invariant: an event is deleted only if every slot that ever had a reading has confirmed a position that was read a retention of its connector after the event
 * was written, and half of that retention after the slot was new.* A slot that is away, was dropped or was lost confirms nothing: the events stay for the snapshot of its
 * connector. A new slot confirms positions before Kafka has that snapshot, which reads the events from before the slot, and must end within half of the retention.
 *
 * A slot counts as new at its first reading, and at each confirmation that comes half of a retention or more after the time up to which the log was captured, because it may
 * be another one since: what the one before had not confirmed is then old enough to be deleted during the snapshot. If that time is more recent, these events are deleted half of a
 * retention later at the earliest. It also counts as new when the clock was ahead at its last confirmation or when it was new, when the reading is ahead of the log, as after a
 * restore, and when its retention is shorter than before, because the snapshot may have begun under the longer one.
 *
 * A transaction must not stay open for as long as the retention. Events are as old as their ids, which have the clock of their producer.
 */
function deleteCaptured(): string {
  const isRead = 'confirmed >= c.lsn';
  const isAhead = 'c.lsn > excluded.lsn';
  const isBehind = '(c.captured_until BETWEEN excluded.lsn_at - $2 / 2 AND excluded.lsn_at) IS NOT TRUE';
  const renewed = (column: string) =>
    `CASE WHEN ${isRead} OR ${isAhead} THEN excluded.${column} ELSE c.${column} END`;
  return `CREATE FUNCTION mailroom.delete_captured(slot name, retention interval) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
  confirmed pg_lsn;
  expired timestamptz;
  deleted bigint;
BEGIN
  IF NOT pg_has_role(session_user, current_user, 'USAGE')
    AND NOT EXISTS (SELECT FROM mailroom.login l WHERE l.login = session_user AND l.role = 'connector') THEN
    RAISE insufficient_privilege USING MESSAGE = 'This login is not a connector of the Mailroom in this database';
  END IF;
  IF retention IS NULL OR retention < interval '1 hour' THEN
    RAISE invalid_parameter_value USING MESSAGE = 'The retention of captured events must be at least one hour';
  END IF;
  SELECT s.confirmed_flush_lsn INTO confirmed FROM pg_replication_slots s
    WHERE s.slot_name = $1 AND s.database = current_database() AND s.wal_status IS DISTINCT FROM 'lost';
  IF confirmed IS NULL THEN
    RETURN 0;
  END IF;
  INSERT INTO mailroom.capture AS c (slot, retention, since, lsn, lsn_at)
    VALUES ($1, $2, clock_timestamp(), pg_current_wal_insert_lsn(), clock_timestamp())
    ON CONFLICT ON CONSTRAINT capture_pkey DO UPDATE SET retention = excluded.retention, lsn = ${renewed('lsn')}, lsn_at = ${renewed('lsn_at')},
      since = CASE WHEN ${isAhead} OR c.since > excluded.since OR $2 < c.retention OR (${isRead} AND ${isBehind}) THEN excluded.since ELSE c.since END,
      captured_until = CASE WHEN ${isRead} THEN least(c.lsn_at, excluded.lsn_at) WHEN c.captured_until <= excluded.lsn_at THEN c.captured_until END;
  SELECT CASE WHEN bool_and(coalesce(c.captured_until - c.retention / 2 >= c.since, false)) THEN min(c.captured_until - c.retention) END
    INTO expired FROM mailroom.capture c;
  DELETE FROM mailroom.event e USING (
    SELECT o.event_id FROM mailroom.event o WHERE o.published_by = 'cdc'
      AND o.event_id < (lpad(to_hex((extract(epoch FROM expired) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
    ORDER BY o.event_id LIMIT 10000
  ) old WHERE e.event_id = old.event_id;
  GET DIAGNOSTICS deleted = ROW_COUNT;
  RETURN deleted;
END
$function$;`;
}
