import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import {
  errorCode,
  errorMessage,
  isMailroomError,
  MailroomError,
} from '../../lambdas/runtime/base/errors.ts';
import { backoffMs } from '../../lambdas/runtime/store/backoff.ts';
import { systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import type { OutboxChange } from '../../lambdas/runtime/store/mysql/outbox-operator.ts';
import { storable } from '../../lambdas/runtime/store/postgres/outbox-writes.ts';
import { isRetryable, type Sql, sqlState } from '../../lambdas/runtime/store/postgres/sql.ts';
import { readOneRow, readRows } from '../../lambdas/runtime/store/postgres/sql-rows.ts';
import { type DatabaseOutboxChanges, databaseOutboxChanges } from './database-outbox-changes.ts';

/** The most tries of a change whose answer was lost, or that had to wait for a lock. */
const TRIES = 5;

/** A server that starts accepts no connection, so it gets no statement: `cannot_connect_now`. */
const STARTING = '57P03';

/** Errors of Node before there is a connection: nothing was sent. */
const NOT_CONNECTED = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN)$/;

/** Dependencies of {@link changeEvents}. */
interface ChangeDeps {
  readonly database: Sql;
  /** Waits before another try, milliseconds. @default as long as it says */
  readonly sleep?: ((ms: number) => Promise<unknown>) | undefined;
}

/**
 * Has the database change events.
 *
 * A lost answer does not tell whether they were changed. Each try has the same token: it changes nothing that an earlier one has changed,
 * and returns its ids.
 *
 * @param eventIds - `null` for all of the state from which they are changed
 * @returns the ids of those that were changed
 * @throws `COMMIT_UNKNOWN` if the last answer was lost, too
 */
export async function changeEvents(
  { database, sleep = pause }: ChangeDeps,
  name: OutboxChange,
  eventIds: readonly string[] | null,
  reason: string,
  sentUntil?: number,
): Promise<readonly string[]> {
  const more = sentUntil === undefined ? '' : ', to_timestamp($4::double precision / 1000::float8)';
  const call = `SELECT id::text AS id FROM mailroom.${name}($1::text[]::uuid[], $2::text, $3::text::uuid${more}) AS id`;
  const values = [eventIds, storable(reason), randomUUID(), ...(sentUntil === undefined ? [] : [sentUntil])];
  let isUnknown = false;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return (await readRows(database, call, values, { id: 'text' })).map(({ id }) => id);
    } catch (error) {
      const isLost = hasNoAnswer(error);
      isUnknown ||= isLost;
      if (attempt < TRIES && (isLost || isRetryable(error))) {
        await sleep(backoffMs(attempt, 100, 2_000, systemRandomBytes));
        continue;
      }
      if (!isUnknown) throw error;
      throw new MailroomError(
        'COMMIT_UNKNOWN',
        `The answer of the database to mailroom.${name} was lost (${errorMessage(error)}). Whether it has changed ${eventIds?.join(', ') ?? 'the events'} is unknown. Repeat the command: it shows what remains.`,
        { cause: error },
      );
    }
  }
}

/** The statement may have been committed: its connection was lost, or closed by the server. */
function hasNoAnswer(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== undefined) return /^(08|57P)/.test(state) && state !== STARTING;
  if (isMailroomError(error, 'UNREACHABLE')) return !NOT_CONNECTED.test(errorCode(error.cause));
  return !isMailroomError(error);
}

const HAS = `SELECT (EXISTS (SELECT FROM mailroom.event e WHERE e.event_id = $1::text::uuid)
  OR EXISTS (SELECT FROM mailroom.dead d WHERE d.event_id = $1::text::uuid))::text AS has`;

/** Changes the events in a database. Its login needs the role `operator`. */
export function postgresOutboxChanges(deps: ChangeDeps): DatabaseOutboxChanges {
  return databaseOutboxChanges({
    change: (...change) => changeEvents(deps, ...change),
    has: async (eventId) => (await readOneRow(deps.database, HAS, [eventId], { has: 'boolean' })).has,
  });
}
