/** The tables of change data capture. */
export const CAPTURE_TABLES = ['captured', 'capture'] as const;

/** Events that are left to change data capture. A connector cannot select rows of the binlog, so they have their own table. */
export const CAPTURED_COLUMNS = `  event_id CHAR(36) NOT NULL PRIMARY KEY,
  source VARCHAR(256) NOT NULL,
  type VARCHAR(128) NOT NULL,
  aggregate_type VARCHAR(1024) NOT NULL,
  aggregate_id VARCHAR(1024) NOT NULL,
  trace_id VARCHAR(512),
  envelope MEDIUMTEXT NOT NULL,
  CONSTRAINT captured_id_is_uuidv7 CHECK (event_id LIKE '________-____-7___-____-____________'),
  CONSTRAINT captured_event_is_named CHECK (source <> '' AND type <> ''),
  CONSTRAINT captured_event_has_a_key
    CHECK (OCTET_LENGTH(aggregate_type) BETWEEN 1 AND 1024 AND OCTET_LENGTH(aggregate_id) BETWEEN 1 AND 1024),
  CONSTRAINT captured_event_is_an_object CHECK (envelope LIKE '{%}'),
  CONSTRAINT captured_event_fits_a_record
    CHECK (OCTET_LENGTH(envelope) + OCTET_LENGTH(source) + OCTET_LENGTH(type) + COALESCE(OCTET_LENGTH(trace_id), 0) < 999986)`;

/** A row for each connector: its retention, since when its heartbeats have no gap, and the last one. */
export const CAPTURE_COLUMNS = `  connector VARCHAR(64) NOT NULL PRIMARY KEY,
  retention_days INT NOT NULL,
  since DATETIME(6) NOT NULL,
  beat_at DATETIME(6) NOT NULL`;

/** Half of a retention before a time. */
const halfBefore = (time: string, days: string) => `${time} - INTERVAL ${days} * 12 HOUR`;

/** The bound of ids that are older than a time, which begin with their own. */
const idsBefore = (time: string) => {
  const hex = `LPAD(LOWER(HEX(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', ${time}) DIV 1000)), 12, '0')`;
  return `CONCAT(LEFT(${hex}, 8), '-', RIGHT(${hex}, 4))`;
};

/**
 * The retention of captured events, which a connector runs with each of its heartbeats. It can read neither its position nor what Kafka has stored, so time
 * stands in for both.
 *
 * *Invariant: an event is deleted only a retention after it was written, and only while the heartbeats of every connector have had no gap of half a
 * retention for half a retention.* A connector that is stopped sends none. One that starts again after such a gap, maybe with a snapshot, has half of a retention
 * to catch up, during which the events stay for the next snapshot; so has one whose heartbeats began in the future, because the clock was ahead.
 *
 * So a connector must read each event within a retention, of which shorter gaps are a part. Events are as old as their ids, which have the clock of their producer.
 */
export const DELETE_CAPTURED = `CREATE PROCEDURE mailroom.delete_captured(IN connector_name VARCHAR(64), IN days INT)
MODIFIES SQL DATA
SQL SECURITY DEFINER
BEGIN
  DECLARE at DATETIME(6) DEFAULT UTC_TIMESTAMP(6);
  DECLARE expired DATETIME(6);
  IF days IS NULL OR days < 1 THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'The retention of captured events must be at least one day';
  END IF;
  INSERT INTO mailroom.capture (connector, retention_days, since, beat_at) VALUES (connector_name, days, at, at)
    ON DUPLICATE KEY UPDATE retention_days = days, since = IF(beat_at < ${halfBefore('at', 'days')} OR since > at, at, since), beat_at = at;
  SELECT IF(MIN(since <= ${halfBefore('at', 'retention_days')} AND beat_at >= ${halfBefore('at', 'retention_days')}), MIN(beat_at - INTERVAL retention_days DAY), NULL)
    INTO expired FROM mailroom.capture;
  DELETE FROM mailroom.captured WHERE event_id < ${idsBefore('expired')} ORDER BY event_id LIMIT 10000;
END`;
