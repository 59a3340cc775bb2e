import { asMailroomError, isMailroomError } from '../../base/errors.ts';
import type { Telemetry } from '../../observe/telemetry.ts';
import { failed } from '../../outbox/event-attempts.ts';
import { claimed, released } from '../../outbox/outbox-transitions.ts';
import {
  beforeNextTry,
  countPublished,
  logFailure,
  RECORD_TRIES,
  UNMARKED,
  UNRECORDED,
} from '../../outbox/publish-records.ts';
import type { ClaimedEvent, DatabaseTransitions } from '../../relay/database-transitions.ts';
import type { RandomBytes } from '../event-id.ts';
import { WAKE_NEXT } from './aggregate-order.ts';
import { type ClaimDeps, eventClaim } from './outbox-claim.ts';
import { insertPublished, storable, transitionOf } from './outbox-writes.ts';
import { isRetryable, sqlState } from './sql.ts';
import { type Columns, type RowOf, readRows } from './sql-rows.ts';

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
${insertPublished('done')}`;

const MARK_DEAD = `WITH done AS (DELETE FROM mailroom.dead WHERE event_id = ANY($1::uuid[]) RETURNING event_id)
${insertPublished('done')}`;

const RELEASE = `${LOCKED} AND fence = $2::uuid ORDER BY event_id FOR UPDATE
)
UPDATE mailroom.pending p SET fence = NULL, last_error = coalesce($4::text, p.last_error),
  due_at = clock_timestamp() + $3::double precision * (0.5::float8 + random() / 2::float8) * interval '1 ms'
FROM locked WHERE p.event_id = locked.event_id AND p.fence = $2::uuid`;

/** Creates the transitions of one relay, each one statement in its own transaction, on the clock of the database. */
export function postgresTransitions(deps: TransitionDeps): DatabaseTransitions {
  const { config, database, clock, telemetry } = deps;

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
        if (attempt >= RECORD_TRIES || !mayRecover(error)) {
          logFailure({ telemetry }, failure, rows, asMailroomError(error));
          return undefined;
        }
        await beforeNextTry(deps, attempt);
      }
    }
  };

  return {
    claim: eventClaim(deps),

    markPublished: async (rows) => {
      if (rows.length === 0) return [];
      countPublished(deps, rows);
      const marked = await recorded(MARK, [idsOf(rows)], rows, UNMARKED, { event_id: 'text' });
      if (marked === undefined) return rows;
      const ids = new Set(marked.map(({ event_id }) => event_id));
      // Also after those that another relay has marked: it may have crashed before it did this.
      if (config.orderBy !== undefined)
        await recorded(
          WAKE_NEXT,
          [idsOf(rows)],
          rows,
          'The next events of aggregates could not be woken',
          {},
        );
      // Neither in the queue nor dead: marked by another relay.
      const absent = rows.filter(({ eventId }) => !ids.has(eventId));
      if (absent.length === 0) return [];
      const looked = await recorded(MARK_DEAD, [idsOf(absent)], absent, UNMARKED, {});
      return looked === undefined ? absent : [];
    },

    release: async (rows, afterMs, error) => {
      const [first] = rows;
      if (first === undefined) return;
      const { lastError } = released(first, clock.now() + afterMs, error).set;
      const values = [idsOf(rows), first.fence, afterMs, storable(lastError ?? null)];
      await recorded(
        RELEASE,
        values,
        rows,
        'Events could not be released; they are due when their lease ends',
        {},
      );
    },

    renew: async (row) => {
      const now = clock.now();
      const lease = claimed(row, now, config.claimLeaseMs);
      const renewal = transitionOf(now, [row.eventId, row.fence], lease);
      const held = await recorded(...renewal, [row], 'The lease of an event could not be renewed', {});
      return held?.length === 1 ? { ...row, ...lease.set } : undefined;
    },

    failEvent: async (row, error, refused) => {
      const now = clock.now();
      const failure = failed({ ...deps, now }, row, error, refused);
      const done = await recorded(
        ...transitionOf(now, [row.eventId, row.fence], failure),
        [row],
        UNRECORDED,
        {},
      );
      if (failure.set.status === 'DEAD' && done?.length === 1) telemetry.count('EventsDead');
    },
  };
}

function idsOf(rows: readonly ClaimedEvent[]): string[] {
  return rows.map(({ eventId }) => eventId);
}

/** Another try may succeed: also after a lost connection, whose error has no SQLSTATE. */
function mayRecover(error: unknown): boolean {
  return !isMailroomError(error) && (sqlState(error) === undefined || isRetryable(error));
}
