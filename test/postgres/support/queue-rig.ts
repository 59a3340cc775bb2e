import { systemClock } from '../../../lambdas/runtime/base/clock.ts';
import type { PgClient } from '../../../lambdas/runtime/postgres/databases.ts';
import { careForTables } from '../../../lambdas/runtime/postgres/postgres-care.ts';
import { createPostgresOutbox } from '../../../lambdas/runtime/postgres/postgres-outbox.ts';
import { createPostgresRelay } from '../../../lambdas/runtime/postgres/postgres-relay.ts';
import type { DatabaseRelayConfig } from '../../../lambdas/runtime/relay/database-config.ts';
import { systemRandomBytes } from '../../../lambdas/runtime/store/event-id.ts';
import { postgresTransitions } from '../../../lambdas/runtime/store/postgres/relay-transitions.ts';
import { memoryTelemetry } from '../../../testing/memory-telemetry.ts';
import { QUEUE_PRODUCER, type QueueRig } from '../../contract/database-queue-contract.ts';
import { relayConfig } from './relay-config.ts';
import type { Rig } from './rig.ts';

/** The tables in which an event can be. */
const STATES = ['event', 'pending', 'published', 'dead', 'discarded', 'cancelled'];

/** A database with the tables of the outbox, for the contract that every database keeps. */
export function queueRigOf(rig: Rig): QueueRig {
  const { database } = rig;
  const partsOf = (settings: Partial<DatabaseRelayConfig> = {}) => ({
    config: relayConfig(settings),
    database,
    clock: systemClock,
    random: systemRandomBytes,
    telemetry: memoryTelemetry(),
  });
  return {
    outboxOf: (service) => {
      const config = { ...QUEUE_PRODUCER, service };
      const outbox = createPostgresOutbox({ config, database, telemetry: memoryTelemetry() });
      return {
        commit: outbox.commit,
        write: (tx, events) => outbox.write(tx as PgClient, events),
        cancel: (tx, eventId) => outbox.cancel(tx as PgClient, eventId),
      };
    },
    transaction: database.transaction,
    transitions: (settings) => postgresTransitions(partsOf(settings)),
    relay: (bus, settings) => createPostgresRelay({ ...partsOf(settings), bus }),
    queue: async () =>
      (
        await rig.rows(
          `SELECT event_id::text AS id, fence IS NOT NULL AS held, attempts, last_error,
            (extract(epoch FROM due_at - clock_timestamp()) * 1000)::float8 AS due_in FROM mailroom.pending ORDER BY event_id`,
        )
      ).map(({ id, held, attempts, last_error, due_in }) => ({
        eventId: String(id),
        isHeld: held === true,
        attempts: Number(attempts),
        lastError: last_error as string | null,
        dueInMs: Number(due_in),
      })),
    tablesOf: async (eventId) => {
      const text = STATES.map((name) => `SELECT '${name}' AS name FROM mailroom.${name} WHERE event_id = $1`);
      return (await rig.rows(text.join(' UNION ALL '), eventId)).map(({ name }) => String(name)).toSorted();
    },
    envelopeOf: async (eventId) =>
      (await rig.rows('SELECT envelope FROM mailroom.event WHERE event_id = $1', eventId))[0]?.envelope as
        | string
        | undefined,
    makeDue: async () => {
      await rig.pool.query('UPDATE mailroom.pending SET due_at = clock_timestamp()');
    },
    waiting: async () =>
      Object.fromEntries(
        (await rig.rows('SELECT event_id, waits_for FROM mailroom.pending WHERE waits_for IS NOT NULL')).map(
          ({ event_id, waits_for }) => [String(event_id), String(waits_for)],
        ),
      ),
    operate: async (change, eventId) => {
      await rig.pool.query(`SELECT mailroom.${change}(ARRAY[$1::uuid], 'fixed')`, [eventId]);
    },
    age: async (table, days) => {
      await rig.pool.query(
        `UPDATE mailroom.${table} SET ${table}_at = ${table}_at - $1::int * interval '1 day'`,
        [days],
      );
    },
    care: async (settings) => {
      const parts = partsOf(settings);
      await careForTables(parts);
      return parts.telemetry;
    },
    clear: rig.clear,
    close: rig.close,
  };
}
