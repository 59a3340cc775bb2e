import { PARKED_MS } from '../../outbox/outbox-transitions.ts';

/** Identifies the aggregate of an event in an index, whatever the length of its names. */
const hashOf = (of: string) =>
  `pg_catalog.hashtextextended(${of}source, pg_catalog.hashtextextended(${of}aggregate_type, pg_catalog.hashtextextended(${of}aggregate_id, 0::bigint)))`;

/**
 * Two events are of the same aggregate. The names are compared in a CASE, about which the planner assumes nothing: otherwise, before the table has statistics, it
 * expects that few events of the index have them, and reads and sorts all of an aggregate instead of going to the next one in the index.
 */
const isSame = (a: string, b: string) =>
  `${hashOf(`${a}.`)} = ${hashOf(`${b}.`)} AND CASE WHEN ${a}.source = ${b}.source AND ${a}.aggregate_type = ${b}.aggregate_type AND ${a}.aggregate_id = ${b}.aggregate_id THEN true ELSE false END`;

/**
 * The order in which events were written: each gets the next number of a sequence when it is inserted. A number says nothing about the time of a commit, so no
 * reader may follow it; within an aggregate, it is the order of transactions that lock the aggregate before they write. Scheduled and captured events have none.
 */
export const AGGREGATE_ORDER = `CREATE SEQUENCE mailroom.event_ordinal;
ALTER TABLE mailroom.event ADD COLUMN ordinal bigint;
ALTER TABLE mailroom.event ALTER COLUMN ordinal SET DEFAULT nextval('mailroom.event_ordinal'::regclass);
ALTER TABLE mailroom.pending ADD COLUMN waits_for uuid;
CREATE INDEX event_in_aggregate ON mailroom.event ((${hashOf('')}), ordinal) WHERE ordinal IS NOT NULL;
GRANT USAGE ON SEQUENCE mailroom.event_ordinal TO mailroom_producer, mailroom_consumer;`;

/**
 * The part of a claim that skips an event while the one before it in its aggregate is in the queue, claimed or not, or DEAD. It follows the query `due`, which has locked
 * what is due, and puts off what it skips, so that no claim meets it again until it is woken.
 *
 * *Invariant: an event is claimed only if the event before it was published, discarded or deleted.* That one was claimed under the same condition, so by
 * induction it holds for all events before it that were visible then: one that commits later, because its transaction did not lock the aggregate, is published
 * late, and nothing behind waits for it.
 */
export const IN_ORDER = `placed AS MATERIALIZED (
  SELECT due.event_id, (SELECT b.event_id FROM mailroom.event e, LATERAL (
      SELECT b.event_id FROM mailroom.event b WHERE ${isSame('b', 'e')} AND b.ordinal < e.ordinal ORDER BY b.ordinal DESC LIMIT 1
    ) b WHERE e.event_id = due.event_id
      AND (EXISTS (SELECT FROM mailroom.pending q WHERE q.event_id = b.event_id) OR EXISTS (SELECT FROM mailroom.dead d WHERE d.event_id = b.event_id))
  ) AS waits_for FROM due
), parked AS (
  UPDATE mailroom.pending p SET due_at = clock_timestamp() + ${PARKED_MS}::float8 * interval '1 ms', fence = NULL, waits_for = placed.waits_for
  FROM placed WHERE p.event_id = placed.event_id AND placed.waits_for IS NOT NULL RETURNING 1
), free AS (
  SELECT event_id FROM placed WHERE waits_for IS NULL
)`;

/**
 * Makes the events due that follow published ones in their aggregates. It is sent after the mark has committed: a claim whose snapshot is older then finds the event
 * due later than its own start, and leaves it; a later one sees that the event before it is gone. It wakes also an event that is not put off yet: such a
 * claim may be about to do that. Rows are locked in the order of their ids, as a mark locks them.
 */
export const WAKE_NEXT = `WITH following AS MATERIALIZED (
  SELECT p.event_id FROM mailroom.event e, LATERAL (
      SELECT a.event_id FROM mailroom.event a WHERE ${isSame('a', 'e')} AND a.ordinal > e.ordinal ORDER BY a.ordinal LIMIT 1
    ) a JOIN mailroom.pending p ON p.event_id = a.event_id
  WHERE e.event_id = ANY($1::uuid[]) AND p.fence IS NULL ORDER BY p.event_id FOR UPDATE OF p
)
UPDATE mailroom.pending p SET due_at = clock_timestamp(), waits_for = NULL FROM following f WHERE p.event_id = f.event_id AND p.fence IS NULL`;
