import type { PoolConnection } from 'mysql2/promise';
import { systemClock } from '../../../lambdas/runtime/base/clock.ts';
import { careForTables } from '../../../lambdas/runtime/mysql/mysql-care.ts';
import { createMysqlOutbox } from '../../../lambdas/runtime/mysql/mysql-outbox.ts';
import { createMysqlRelay } from '../../../lambdas/runtime/mysql/mysql-relay.ts';
import type { DatabaseRelayConfig } from '../../../lambdas/runtime/relay/database-config.ts';
import { systemRandomBytes } from '../../../lambdas/runtime/store/event-id.ts';
import { idOf } from '../../../lambdas/runtime/store/mysql/expressions.ts';
import { changeEvents } from '../../../lambdas/runtime/store/mysql/outbox-operator.ts';
import { mysqlTransitions } from '../../../lambdas/runtime/store/mysql/relay-transitions.ts';
import type { ClaimMode } from '../../../lambdas/runtime/store/mysql/server-check.ts';
import { memoryTelemetry } from '../../../testing/memory-telemetry.ts';
import { QUEUE_PRODUCER, type QueueRig } from '../../contract/database-queue-contract.ts';
import { relayConfig } from '../../postgres/support/relay-config.ts';
import type { Rig } from './rig.ts';

/** The tables in which an event can be. */
const STATES = ['event', 'pending', 'published', 'dead', 'discarded', 'cancelled'];

/** A database with the tables of the outbox, for the contract that every database keeps. */
export function queueRigOf(rig: Rig, claim?: ClaimMode): QueueRig {
  const { database } = rig;
  const partsOf = (settings: Partial<DatabaseRelayConfig> = {}) => ({
    config: relayConfig(settings),
    database,
    clock: systemClock,
    random: systemRandomBytes,
    telemetry: memoryTelemetry(),
    claim,
  });
  const hex = (eventId: string) => eventId.replaceAll('-', '');
  return {
    outboxOf: (service) => {
      const config = { ...QUEUE_PRODUCER, service };
      const outbox = createMysqlOutbox({ config, database, telemetry: memoryTelemetry() });
      return {
        commit: outbox.commit,
        write: (tx, events) => outbox.write(tx as PoolConnection, events),
        cancel: (tx, eventId) => outbox.cancel(tx as PoolConnection, eventId),
      };
    },
    transaction: database.transaction,
    transitions: (settings) => mysqlTransitions(partsOf(settings)),
    relay: (bus, settings) => {
      const { config, ...parts } = partsOf(settings);
      return createMysqlRelay({ ...parts, config: { ...config, claim }, bus });
    },
    queue: async () =>
      (
        await rig.rows(
          `SELECT LOWER(HEX(event_id)) AS id, fence IS NOT NULL AS held, attempts, last_error,
            TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), due_at) / 1000 AS due_in FROM mailroom.pending ORDER BY event_id`,
        )
      ).map(({ id, held, attempts, last_error, due_in }) => ({
        eventId: idOf(String(id)),
        isHeld: held === 1,
        attempts: Number(attempts),
        lastError: last_error as string | null,
        dueInMs: Number(due_in),
      })),
    tablesOf: async (eventId) => {
      const text = STATES.map(
        (name) => `SELECT '${name}' AS name FROM mailroom.${name} WHERE event_id = UNHEX('${hex(eventId)}')`,
      );
      return (await rig.rows(text.join(' UNION ALL '))).map(({ name }) => String(name)).toSorted();
    },
    envelopeOf: async (eventId) =>
      (await rig.rows('SELECT envelope FROM mailroom.event WHERE event_id = UNHEX(?)', hex(eventId)))[0]
        ?.envelope as string | undefined,
    makeDue: async () => {
      await rig.pool.query('UPDATE mailroom.pending SET due_at = UTC_TIMESTAMP(6)');
    },
    waiting: async () =>
      Object.fromEntries(
        (
          await rig.rows(
            'SELECT LOWER(HEX(event_id)) AS id, LOWER(HEX(waits_for)) AS behind FROM mailroom.pending WHERE waits_for IS NOT NULL',
          )
        ).map(({ id, behind }) => [idOf(String(id)), idOf(String(behind))]),
      ),
    operate: async (change, eventId) => {
      await changeEvents(partsOf(), change, [eventId], 'fixed');
    },
    age: async (table, days) => {
      await rig.pool.query(`UPDATE mailroom.${table} SET ${table}_at = ${table}_at - INTERVAL ? DAY`, [days]);
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
