/** The names in a login's rows of `mailroom.login`: the consumers whose inbox it has. */
const CONSUMERS =
  "ARRAY(SELECT l.scope FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'consumer')";

const has = (role: 'auditor' | 'operator') =>
  `EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = '${role}')`;

/**
 * The order of a consumer's events: the place of each message, and the last applied sequence of each aggregate. Such a row is never deleted.
 *
 * *Invariant: an operator only raises a number, from the one that was read, and the log has an entry with the name of the login.*
 */
export const EVENT_ORDER = `ALTER TABLE mailroom.inbox ADD COLUMN place text, ADD COLUMN superseded_by bigint, ADD COLUMN commit_id text;
CREATE TABLE mailroom.last_sequence (
  consumer text NOT NULL,
  place text NOT NULL,
  last bigint NOT NULL CHECK (last BETWEEN 0 AND 9007199254740991),
  event_id text,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (consumer, place)
) WITH (fillfactor = 80);
GRANT SELECT, INSERT, UPDATE ON mailroom.last_sequence TO mailroom_consumer;
GRANT SELECT ON mailroom.last_sequence TO mailroom_auditor, mailroom_operator;
ALTER TABLE mailroom.last_sequence ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON mailroom.last_sequence TO mailroom_consumer USING (consumer = ANY (${CONSUMERS}));
CREATE POLICY auditor ON mailroom.last_sequence FOR SELECT TO mailroom_auditor USING (${has('auditor')});
CREATE POLICY operator ON mailroom.last_sequence FOR SELECT TO mailroom_operator USING (${has('operator')});
CREATE FUNCTION mailroom.raise_last(of_consumer text, of_place text, from_last bigint, to_last bigint, why text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
  IF NOT pg_has_role(session_user, current_user, 'USAGE')
    AND NOT EXISTS (SELECT FROM mailroom.login l WHERE l.login = session_user AND l.role = 'operator') THEN
    RAISE insufficient_privilege USING MESSAGE = 'This login is not an operator of the Mailroom in this database';
  END IF;
  IF to_last <= coalesce(from_last, 0) THEN
    RETURN false;
  END IF;
  IF from_last IS NULL THEN
    INSERT INTO mailroom.last_sequence (consumer, place, last) VALUES (of_consumer, of_place, to_last) ON CONFLICT DO NOTHING;
  ELSE
    UPDATE mailroom.last_sequence l SET last = to_last, event_id = NULL, at = clock_timestamp()
    WHERE l.consumer = of_consumer AND l.place = of_place AND l.last = from_last;
  END IF;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO mailroom.operation (at, token, operator, command, subject, reason)
  VALUES (date_trunc('milliseconds', clock_timestamp()), gen_random_uuid()::text, session_user, 'postgres order',
    of_consumer || ' ' || of_place || ' ' || to_last::text, why);
  RETURN true;
END
$function$;
REVOKE ALL ON FUNCTION mailroom.raise_last FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mailroom.raise_last TO mailroom_operator;`;
