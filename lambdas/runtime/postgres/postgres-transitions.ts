import { asMailroomError, isMailroomError } from '../base/errors.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import { eventFailure, logFailure } from '../outbox/event-attempts.ts';
import type { Transitions } from '../relay/publish-events.ts';
import { eventIdTime, type RandomBytes } from '../store/event-id.ts';
import { backoffMs } from '../store/retry.ts';
import { type ClaimDeps, type ClaimedEvent, eventClaim } from './postgres-claim.ts';
import { isRetryable, sqlState } from './sql.ts';
import { type Columns, type RowOf, readRows } from './sql-rows.ts';

/** Every transition of the queue that a relay makes. */
export interface PostgresTransitions extends Transitions<ClaimedEvent> {
  /**
   * Claims the events that have been due the longest. It waits for no lock.
   *
   * @param fully - true to find also events that were committed late, at once
   * @throws the database's error
   */
  claim(limit: number, fully?: boolean): Promise<ClaimedEvent[]>;
  /**
   * Releases events that were not published, without counting an attempt. It never throws.
   *
   * @param afterMs - they are due again after half of this to all of it, so that those of one failed call do not meet again
   */
  release(rows: readonly ClaimedEvent[], afterMs: number, error?: string): Promise<void>;
  /** Begins the lease of an event again, if no other relay has claimed it. It never throws. @returns `undefined` if it is not held */
  renew(row: ClaimedEvent): Promise<ClaimedEvent | undefined>;
}

/** Dependencies of {@link postgresTransitions}. */
export interface TransitionDeps extends ClaimDeps {
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
}

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
  due_at = clock_timestamp() + $3::double precision * (0.5::float8 + random() / 2::float8) * interval '1 ms'
FROM locked WHERE p.event_id = locked.event_id AND p.fence = $2::uuid`;

const RENEW = `UPDATE mailroom.pending SET due_at = clock_timestamp() + $3::double precision * interval '1 ms'
WHERE event_id = $1::uuid AND fence = $2::uuid RETURNING event_id::text AS event_id`;

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
    claim: eventClaim(deps),

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

    renew: async (row) => {
      const leaseUntil = clock.now() + config.claimLeaseMs;
      const values = [row.eventId, row.fence, config.claimLeaseMs];
      const held = await recorded(RENEW, values, [row], 'The lease of an event could not be renewed', {});
      return held?.length === 1 ? { ...row, leaseUntil } : undefined;
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
