import { randomUUID } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { asMailroomError, isMailroomError } from '../base/errors.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import { xrayHeaderOf } from '../observe/trace-context.ts';
import { eventFailure, logFailure } from '../outbox/event-failure.ts';
import type { EventRow, Transitions } from '../relay/publish-events.ts';
import { eventIdTime, type RandomBytes } from '../store/event-id.ts';
import { backoffMs } from '../store/retry.ts';
import type { PostgresRelayConfig } from './postgres-settings.ts';
import { isRetryable, type Sql, sqlState } from './sql.ts';
import { type Columns, type RowOf, readRows } from './sql-rows.ts';

/** An event that this relay holds. */
export interface ClaimedEvent extends EventRow {
  /** Identifies the claim. */
  readonly fence: string;
}

/** Every transition of the queue that a relay makes. */
export interface PostgresTransitions extends Transitions<ClaimedEvent> {
  /** Claims the events that have been due the longest. It waits for no lock. @throws the database's error */
  claim(limit: number): Promise<ClaimedEvent[]>;
  /**
   * Releases events that were not published, without counting an attempt. It never throws.
   *
   * @param afterMs - they are due again after half of this to all of it, so that those of one failed call do not meet again
   */
  release(rows: readonly ClaimedEvent[], afterMs: number, error?: string): Promise<void>;
}

/** Dependencies of {@link postgresTransitions}. */
export interface TransitionDeps {
  readonly config: PostgresRelayConfig;
  readonly database: Sql;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
}

/**
 * A materialized query, because a claim with `IN (SELECT … LIMIT … SKIP LOCKED)` may be planned as a join that claims more than its limit.
 * `statement_timestamp()` is a constant for the planner: with `clock_timestamp()` it could not use the index.
 */
const CLAIM = `WITH due AS MATERIALIZED (
  SELECT event_id FROM mailroom.pending WHERE due_at <= statement_timestamp() ORDER BY due_at LIMIT $1::int FOR UPDATE SKIP LOCKED
), claimed AS (
  UPDATE mailroom.pending p SET due_at = clock_timestamp() + $2::double precision * interval '1 ms', fence = $3::uuid
  FROM due WHERE p.event_id = due.event_id RETURNING p.event_id, p.attempts
)
SELECT c.event_id::text AS event_id, e.source, e.type, e.trace_id, e.envelope, c.attempts::text AS attempts FROM claimed c LEFT JOIN mailroom.event e USING (event_id)`;

const CLAIMED = {
  event_id: 'text',
  source: 'text?',
  type: 'text?',
  trace_id: 'text?',
  envelope: 'text?',
  attempts: 'number',
} as const;

/** All relays lock rows in the order of their ids: otherwise two marks of the same events can wait for each other. */
const LOCKED = `WITH locked AS MATERIALIZED (
  SELECT event_id FROM mailroom.pending WHERE event_id = ANY($1::uuid[])`;

const MARK = `${LOCKED} ORDER BY event_id FOR UPDATE
), done AS (
  DELETE FROM mailroom.pending p USING locked WHERE p.event_id = locked.event_id RETURNING p.event_id
)
INSERT INTO mailroom.published (event_id, published_at) SELECT event_id, clock_timestamp() FROM done RETURNING event_id::text AS event_id`;

const MARK_DEAD = `WITH done AS (DELETE FROM mailroom.dead WHERE event_id = ANY($1::uuid[]) RETURNING event_id)
INSERT INTO mailroom.published (event_id, published_at) SELECT event_id, clock_timestamp() FROM done RETURNING event_id`;

const RELEASE = `${LOCKED} AND fence = $2::uuid ORDER BY event_id FOR UPDATE
)
UPDATE mailroom.pending p SET fence = NULL, last_error = coalesce($4::text, p.last_error),
  due_at = clock_timestamp() + $3::double precision * (0.5 + random() / 2) * interval '1 ms'
FROM locked WHERE p.event_id = locked.event_id AND p.fence = $2::uuid`;

const FAIL = `UPDATE mailroom.pending SET due_at = clock_timestamp() + $3::double precision * interval '1 ms', attempts = $4::int, last_error = $5::text, fence = NULL
WHERE event_id = $1::uuid AND fence = $2::uuid`;

const DEAD = `WITH gone AS (DELETE FROM mailroom.pending WHERE event_id = $1::uuid AND fence = $2::uuid RETURNING event_id)
INSERT INTO mailroom.dead (event_id, dead_at, attempts, last_error, fingerprint)
SELECT event_id, clock_timestamp(), $3::int, $4::text, $5::text FROM gone ON CONFLICT DO NOTHING RETURNING event_id`;

/** The maximum number of tries of a statement after a publish. What stays unrecorded is published again. */
const TRIES = 5;

/** Creates the transitions of one relay, each one statement in its own transaction, on the clock of the database. */
export function postgresTransitions(deps: TransitionDeps): PostgresTransitions {
  const { config, database, clock, random, telemetry } = deps;

  /** Repeats a statement that changes nothing the second time. @returns `undefined` if it failed */
  const recorded = async <C extends Columns>(
    text: string,
    values: readonly unknown[],
    rows: readonly ClaimedEvent[],
    failure: string,
    columns: C,
  ): Promise<readonly RowOf<C>[] | undefined> => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await readRows(database, text, values, columns);
      } catch (error) {
        if (attempt >= TRIES || !mayRecover(error)) {
          logFailure({ telemetry }, failure, rows, asMailroomError(error));
          return undefined;
        }
        await clock.sleep(backoffMs(attempt, 50, 1_000, random));
      }
    }
  };

  return {
    claim: async (limit) => {
      const fence = randomUUID();
      // From before the claim: on the database's clock, the lease ends later than this.
      const leaseUntil = clock.now() + config.claimLeaseMs;
      const rows = await readRows(database, CLAIM, [limit, config.claimLeaseMs, fence], CLAIMED);
      return rows.map((row) => claimedEvent(row, fence, leaseUntil));
    },

    markPublished: async (rows) => {
      if (rows.length === 0) return [];
      const now = clock.now();
      telemetry.count('EventsPublished', rows.length);
      for (const { eventId } of rows)
        telemetry.duration('PublishLatency', Math.max(0, now - eventIdTime(eventId)));
      const failure = 'Events were published but not marked; a relay will publish them once more';
      const marked = await recorded(MARK, [idsOf(rows)], rows, failure, { event_id: 'text' });
      if (marked === undefined) return rows;
      const ids = new Set(marked.map(({ event_id }) => event_id));
      // Neither in the queue nor dead: marked by another relay.
      const absent = rows.filter(({ eventId }) => !ids.has(eventId));
      if (absent.length === 0) return [];
      const looked = await recorded(MARK_DEAD, [idsOf(absent)], absent, failure, {});
      return looked === undefined ? absent : [];
    },

    release: async (rows, afterMs, error) => {
      const [first] = rows;
      if (first === undefined) return;
      const values = [idsOf(rows), first.fence, afterMs, error ?? null];
      await recorded(
        RELEASE,
        values,
        rows,
        'Events could not be released; they are due when their lease ends',
        {},
      );
    },

    failEvent: async (row, error, refused) => {
      const { attempts, dead, retryMs, cause } = eventFailure(deps, row, error, refused);
      const { eventId, fence } = row;
      const values = dead
        ? [eventId, fence, attempts, cause.lastError, cause.fingerprint]
        : [eventId, fence, retryMs, attempts, cause.lastError];
      const done = await recorded(
        dead ? DEAD : FAIL,
        values.map(storable),
        [row],
        'The failure of an event could not be recorded',
        {},
      );
      if (dead && done?.length === 1) telemetry.count('EventsDead');
    },
  };
}

function claimedEvent(row: RowOf<typeof CLAIMED>, fence: string, leaseUntil: number): ClaimedEvent {
  return {
    eventId: row.event_id,
    fence,
    leaseUntil,
    attempts: row.attempts,
    entry: {
      // An operator has removed the event: no source declares it, so it is reported.
      source: row.source ?? '',
      detailType: row.type ?? '',
      detail: row.envelope ?? '',
      traceHeader: xrayHeaderOf(row.trace_id),
    },
  };
}

function idsOf(rows: readonly ClaimedEvent[]): string[] {
  return rows.map(({ eventId }) => eventId);
}

/** PostgreSQL stores no NUL. */
function storable<T>(value: T): T | string {
  return typeof value === 'string' ? value.replaceAll('\u0000', '') : value;
}

/** Another try may succeed: also after a lost connection, whose error has no SQLSTATE. */
function mayRecover(error: unknown): boolean {
  return !isMailroomError(error) && (sqlState(error) === undefined || isRetryable(error));
}
