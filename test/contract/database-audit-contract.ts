import { createServer } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createDatabaseAuditHandler } from '../../lambdas/audit/database-audit.ts';
import { DATABASE_NAMES, type DatabaseEngine } from '../../lambdas/runtime/base/database-engine.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import type { MailroomRows } from '../../lambdas/runtime/operations/mailroom-rows.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import { lambdaContext, memoryTelemetry } from '../../testing/index.ts';
import { auditRig, consumerEntry } from '../unit/runtime/operations/audit/audit-rig.ts';

/** The place at which an audit opens the database. */
interface AuditedPlace {
  /** @default the port of the server */
  readonly port?: number | undefined;
  /** @default the login of an audit */
  readonly user?: string | undefined;
}

/** A database as the function of a scheduled audit reads it, and as a test fills it. */
export interface AuditedRig {
  readonly engine: DatabaseEngine;
  /** The rows of the database, read through a pool of the function. */
  open(place: AuditedPlace): { readonly rows: MailroomRows; end(): Promise<void> };
  /** Stores an event of orders. */
  event(eventId: string, envelope: string): Promise<void>;
  /** Stores that an event was published. Times are epoch milliseconds. */
  published(eventId: string, at: number): Promise<void>;
  pending(eventId: string, dueAt: number, isHeld: boolean): Promise<void>;
  dead(eventId: string, at: number): Promise<void>;
  /** Stores a message of payments, which it has processed. */
  processed(eventId: string): Promise<void>;
  /** Stores a message of payments, which has failed. */
  failed(eventId: string, claimedAt: number, retryAt: number): Promise<void>;
  clear(): Promise<void>;
  close(): Promise<void>;
}

/** The function of a Mailroom with the inbox of payments in a database and that of inventory in DynamoDB. The time is noon. */
export function scheduledAudit(rig: AuditedRig, place: AuditedPlace = {}) {
  const { engine } = rig;
  const made = auditRig([consumerEntry('payments', { inbox: engine }), consumerEntry('inventory')]);
  const telemetry = memoryTelemetry();
  const gauges: Record<string, number> = {};
  telemetry.gauge = (name, value) => {
    gauges[name] = value;
  };
  const { rows, end } = rig.open(place);
  const handler = createDatabaseAuditHandler(
    {
      ...made.deps,
      config: { tableName: made.table.name, sinceMs: HOUR_MS, everyMs: 15 * MINUTE_MS },
      directory: async () => made.directory,
      telemetry,
      deliveryTelemetry: () => ({ gauge: () => {}, duration: () => {}, flush: () => {} }),
    },
    engine,
    rows,
  );
  const run = async () => {
    try {
      return await handler({}, lambdaContext());
    } finally {
      await end();
    }
  };
  /** An event that a service has written to the database. */
  const stored = async (agoMs: number) => {
    const at = made.clock.now() - agoMs;
    const eventId = mintEventId(at, 256);
    const named = { eventId, type: 'OrderPlaced', version: 1, aggregateType: 'Order', aggregateId: eventId };
    await rig.event(eventId, JSON.stringify({ ...named, occurredAt: at, correlationId: eventId, data: {} }));
    return eventId;
  };
  const published = async (agoMs: number) => {
    const eventId = await stored(agoMs);
    await rig.published(eventId, made.clock.now() - agoMs);
    return eventId;
  };
  return { ...made, run, stored, published, gauges, telemetry };
}

/** The scheduled audit of a Mailroom whose services also use a database. */
export function databaseAuditContract(engine: DatabaseEngine, start: () => Promise<AuditedRig>): void {
  const database = DATABASE_NAMES[engine];
  let rig: AuditedRig;

  beforeAll(async () => {
    rig = await start();
  });
  beforeEach(() => rig.clear());
  afterAll(() => rig.close());

  describe(`the scheduled audit of ${database}`, () => {
    test('accounts for the events of both stores at the consumers of both', async () => {
      const { run, gauges, event, inbox, published } = scheduledAudit(rig);
      const inTable = await event(20 * MINUTE_MS, {}, { aggregateId: 'order-2' });
      for (const eventId of [await published(20 * MINUTE_MS), inTable.eventId]) {
        await rig.processed(eventId);
        await inbox('inventory', eventId);
      }
      expect(await run()).toMatchObject({
        events: 2,
        missing: 0,
        incomplete: 0,
        consumers: { payments: { expected: 2, processed: 2 }, inventory: { expected: 2, processed: 2 } },
      });
      expect(gauges).toEqual({ EventsMissing: 0, EventsDuplicated: 0, RowsUnreadable: 0, RowsChanged: 0 });
    });

    test('finds an event of either store that a consumer with an inbox in the database never received', async () => {
      const { run, gauges, event, inbox, published, telemetry } = scheduledAudit(rig);
      const inTable = await event(25 * MINUTE_MS, {}, { aggregateId: 'order-2' });
      const lost = [await published(20 * MINUTE_MS), inTable.eventId];
      for (const eventId of lost) await inbox('inventory', eventId);
      expect(await run()).toMatchObject({ missing: 2, consumers: { payments: { missing: 2 } } });
      expect(gauges.EventsMissing).toBe(2);
      const warned = JSON.stringify(telemetry.lines());
      for (const eventId of lost) expect(warned).toContain(eventId);
    });

    test('counts what waits, is DEAD or FAILED, and finds what no relay will take and what no queue holds', async () => {
      const { run, stored, published, inbox, clock, gauges, telemetry } = scheduledAudit(rig);
      const now = clock.now();
      await rig.pending(await stored(20 * MINUTE_MS), now, false);
      await rig.dead(await stored(21 * MINUTE_MS), now - 20 * MINUTE_MS);
      const held = await stored(22 * MINUTE_MS);
      await rig.pending(held, now + 1_500 * DAY_MS, true);
      const [failed, dropped] = [await published(23 * MINUTE_MS), await published(24 * MINUTE_MS)];
      for (const eventId of [failed, dropped]) await inbox('inventory', eventId);
      await rig.failed(failed, now - 20 * MINUTE_MS, now + HOUR_MS);
      await rig.failed(dropped, now - 20 * MINUTE_MS, now - 19 * MINUTE_MS);
      const summary = await run();
      expect(summary).toMatchObject({ events: 5, published: 2, pending: 2, dead: 1, changedRows: 1 });
      expect(summary.consumers.payments).toMatchObject({ expected: 2, failed: 1, missing: 1 });
      expect(gauges).toMatchObject({ EventsMissing: 1, RowsChanged: 1 });
      const lists = telemetry.lines().map(({ extra }) => extra);
      expect(lists).toContainEqual(
        expect.objectContaining({
          missing: [expect.objectContaining({ eventId: dropped, consumer: 'payments', row: 'FAILED' })],
        }),
      );
      expect(lists).toContainEqual(
        expect.objectContaining({
          changedRows: [expect.objectContaining({ kind: 'held', eventId: held, store: engine })],
        }),
      );
    });

    test('fails, and reports nothing, if the database does not respond', async () => {
      const silent = createServer((socket) => socket.destroy());
      await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
      const { port } = Object(silent.address());
      const closing = scheduledAudit(rig, { port });
      await expect(closing.run()).rejects.toMatchObject({
        code: 'UNREACHABLE',
        message: expect.stringContaining(`${database} at 127.0.0.1:${port} does not respond`),
      });
      await new Promise((resolve) => silent.close(resolve));
      const refusing = scheduledAudit(rig, { port });
      await expect(refusing.run()).rejects.toMatchObject({ code: 'UNREACHABLE' });
      expect([closing.gauges, refusing.gauges]).toEqual([{}, {}]);
    });
  });
}
