import { asMailroomError, isMailroomError } from '../../base/errors.ts';
import type { Telemetry } from '../../observe/telemetry.ts';
import { failed } from '../../outbox/event-attempts.ts';
import { claimed, type EventTransition, released } from '../../outbox/outbox-transitions.ts';
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
import type { Sql } from '../sql/database.ts';
import { readRows } from '../sql/sql-rows.ts';
import { type EventPlace, PLACE, PLACE_COLUMNS, wakeNext } from './aggregate-order.ts';
import { byIds, ID, idParameter, idText, NOW, TEXT, textParameter } from './expressions.ts';
import { isRepeatable, isRetryable, mysqlErrno } from './mysql-error.ts';
import { eventClaim, type MysqlClaimDeps } from './outbox-claim.ts';
import { makeTransition, moveToPublished } from './outbox-transition.ts';

/** Dependencies of {@link mysqlTransitions}. */
export interface MysqlTransitionDeps extends MysqlClaimDeps {
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
}

/** All relays lock rows in the order of their ids: otherwise two marks of the same events can wait for each other. */
const LOCKED = (table: 'pending' | 'dead', count: number, only = '') =>
  `SELECT ${idText('event_id')} AS event_id, ${PLACE} FROM ${byIds(table, count)}${only} FOR UPDATE`;

const LOCKED_COLUMNS = { event_id: 'text', ...PLACE_COLUMNS } as const;

const RELEASED = (count: number) =>
  `UPDATE ${byIds('pending', count)} SET fence = NULL, last_error = COALESCE(${TEXT}, last_error),
due_at = ${NOW} + INTERVAL ROUND(? * (0.5 + RAND() / 2) * 1000) MICROSECOND`;

/** Creates the transitions of one relay, each a short transaction, on the clock of the database. */
export function mysqlTransitions(deps: MysqlTransitionDeps): DatabaseTransitions {
  const { config, database, clock, telemetry } = deps;
  const claim = eventClaim(deps);

  /** Repeats a transaction that changes nothing the second time. @returns `undefined` if it failed */
  const recorded = async <T>(
    run: (sql: Sql) => Promise<T>,
    rows: readonly ClaimedEvent[],
    failure: string,
  ): Promise<T | undefined> => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await database.transaction((tx) => run(database.in(tx)));
      } catch (error) {
        if (attempt >= RECORD_TRIES || !mayRecover(error)) {
          logFailure({ telemetry }, failure, rows, asMailroomError(error));
          return undefined;
        }
        await beforeNextTry(deps, attempt);
      }
    }
  };

  const make = (row: ClaimedEvent, now: number, transition: EventTransition) => (sql: Sql) =>
    makeTransition(sql, now, [row.eventId, idParameter(row.fence)], transition);

  return {
    // Nothing was claimed by a transaction that was rolled back.
    claim: async (limit) => {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await claim(limit);
        } catch (error) {
          if (attempt >= RECORD_TRIES || !isRepeatable(error)) throw error;
          await beforeNextTry(deps, attempt);
        }
      }
    },

    markPublished: async (rows) => {
      if (rows.length === 0) return [];
      countPublished(deps, rows);
      const marked = await recorded(
        (sql) => mark(sql, idsOf(rows), config.orderBy !== undefined),
        rows,
        UNMARKED,
      );
      return marked === undefined ? rows : [];
    },

    release: async (rows, afterMs, error) => {
      const [first] = rows;
      if (first === undefined) return;
      const { lastError } = released(first, clock.now() + afterMs, error).set;
      await recorded(
        async (sql) => {
          const only = ` WHERE fence = ${ID}`;
          const held = await readRows(
            sql,
            LOCKED('pending', rows.length, only),
            [...idsOf(rows), idParameter(first.fence)],
            LOCKED_COLUMNS,
          );
          const ids = held.map(({ event_id }) => event_id);
          if (ids.length > 0)
            await sql.query(RELEASED(ids.length), [...ids, textParameter(lastError), afterMs]);
        },
        rows,
        'Events could not be released; they are due when their lease ends',
      );
    },

    renew: async (row) => {
      const now = clock.now();
      const lease = claimed(row, now, config.claimLeaseMs);
      const held = await recorded(make(row, now, lease), [row], 'The lease of an event could not be renewed');
      return held ? { ...row, ...lease.set } : undefined;
    },

    failEvent: async (row, error, refused) => {
      const now = clock.now();
      const failure = failed({ ...deps, now }, row, error, refused);
      const done = await recorded(make(row, now, failure), [row], UNRECORDED);
      if (failure.set.status === 'DEAD' && done) telemetry.count('EventsDead');
    },
  };
}

/**
 * Marks events as published under any claim, because they *were* published; also those that became DEAD meanwhile. One that is in
 * neither table was marked by another relay.
 *
 * @param wakes - makes the next event of each aggregate due
 */
async function mark(sql: Sql, ids: readonly string[], wakes: boolean): Promise<true> {
  let left = ids;
  const places: EventPlace[] = [];
  for (const table of ['pending', 'dead'] as const) {
    if (left.length === 0) break;
    const locked = await readRows(sql, LOCKED(table, left.length), left, LOCKED_COLUMNS);
    places.push(...locked);
    const found = locked.map(({ event_id }) => event_id);
    if (found.length > 0) await moveToPublished(sql, table, found);
    left = left.filter((id) => !found.includes(id));
  }
  if (wakes) await wakeNext(sql, places);
  return true;
}

/** In their order, in which rows are locked. */
function idsOf(rows: readonly ClaimedEvent[]): string[] {
  return rows.map(({ eventId }) => idParameter(eventId)).toSorted();
}

/** Another try may succeed: also after a lost connection, whose error has no number. */
function mayRecover(error: unknown): boolean {
  return !isMailroomError(error) && (mysqlErrno(error) === undefined || isRetryable(error));
}
