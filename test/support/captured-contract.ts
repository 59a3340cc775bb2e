import { expect, test } from 'vitest';
import type { OpenDatabase } from '../../cli/deployment/open-database.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { createAudit } from '../../lambdas/runtime/operations/audit/audit.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import { jsonOf, operatedMailroom } from './operated-mailroom.ts';

/** A database with events of `relay: 'cdc'`, and one connector, whose retention is two days. */
export interface CapturedStore {
  readonly open: () => OpenDatabase;
  /** Commits an event of the aggregate `4711`. @param at - the time of its id @returns its id */
  readonly commit: (at: number) => Promise<string>;
  /** Commits an event of the same aggregate that a relay has published. */
  readonly publish: (at: number) => Promise<string>;
  /** Lets the connector read all that was committed. */
  readonly read: () => Promise<unknown>;
  /** Lets time pass in which the connector was stopped. */
  readonly stop: (forMs: number) => Promise<unknown>;
}

/** A consumer whose source is Kafka. */
const LEDGER = {
  ...{ name: 'ledger', service: 'ledger', from: 'Kafka', maxAttempts: 10, inboxRetentionDays: 35, seenAt: 0 },
  events: [{ source: 'orders', type: 'Placed' }],
};

/** What the commands show of events that change data capture publishes. */
export function describeCaptured({ open, commit, publish, read, stop }: CapturedStore): void {
  const why = async (id: string, ...argv: string[]) =>
    jsonOf(await operatedMailroom(open()), 'why', id, ...argv);

  test('why says that no connector has read the event, and requires action after five minutes', async () => {
    const young = await why(await commit(Date.now() - MINUTE_MS));
    expect(young).toMatchObject({ exitCode: 0, verdict: { state: 'publishing', next: null } });
    const { verdict, events, exitCode } = await why(await commit(Date.now() - HOUR_MS));
    expect(verdict).toMatchObject({ state: 'stuck', next: expect.stringContaining(' doctor') });
    expect(verdict.text).toContain('no connector has sent a heartbeat');
    expect(exitCode).toBe(1);
    expect(events).toMatchObject([{ status: 'PUBLISHED', connectors: [] }]);
  });

  test('why tells how far the connector is and how long the event stays, by its id and its aggregate', async () => {
    const at = Date.now() - HOUR_MS;
    const id = await commit(at);
    await read();
    for (const given of [id, id.slice(0, 18), '4711']) {
      const { verdict, events, exitCode } = await why(given, '--since', '2h');
      expect(verdict).toMatchObject({ state: 'unproven', eventId: id, next: null });
      expect(verdict.text).toContain('left to change data capture (the');
      expect(verdict.text).toContain('its consumers of Kafka: none of them is listed here');
      expect(exitCode).toBe(0);
      const [connector, ...others] = events[0].connectors;
      expect(others).toEqual([]);
      expect(connector).toMatchObject({ name: 'mailroom', retentionMs: 2 * DAY_MS });
      expect(connector.readUntil ?? connector.beatAt).toBeGreaterThan(at);
      const { story } = events[0];
      expect(story.map(({ what }: { what: string }) => what)).toEqual(['committed', 'published']);
      expect(story[1].text).toContain('it stays in the database until');
    }
  });

  test('why requires action for an event that was committed after the connector stopped', async () => {
    const before = await commit(Date.now() - 3 * HOUR_MS);
    await read();
    await stop(2 * HOUR_MS);
    const after = await commit(Date.now() - HOUR_MS);
    expect(await why(before)).toMatchObject({ verdict: { state: 'unproven' } });
    const { verdict } = await why(after);
    expect(verdict.state).toBe('stuck');
    expect(verdict.text).toContain('connector mailroom');
    await stop(-30 * DAY_MS);
    expect(await why(after)).toMatchObject({ verdict: { state: 'stuck' } });
  });

  test('why shows its state at a consumer of Kafka, which proves that it was read', async () => {
    const at = Date.now() - HOUR_MS;
    const id = await commit(at);
    const row = { schema: SCHEMA, type: 'Placed', status: 'PROCESSED', attempts: 1, processedAt: at + 1_000 };
    const of = async (...items: Record<string, unknown>[]) => {
      const made = await operatedMailroom(open(), items as never);
      return jsonOf({ ...made, directory: { ...made.directory, sourceConsumers: [LEDGER] } }, 'why', id);
    };
    expect(await of()).toMatchObject({ verdict: { state: 'stuck' } });
    const { verdict, events } = await of({ ...inboxKey('ledger', id), ...row });
    expect(verdict).toMatchObject({ state: 'processed' });
    expect(verdict.text).toContain('processed by ledger (1 s after its commit)');
    expect(events[0].consumers).toEqual({ ledger: 'PROCESSED' });
    await read();
    expect(await of()).toMatchObject({ verdict: { state: 'unproven' } });
  });

  test('the audit reads it, and expects it at no consumer of the bus', async () => {
    const at = Date.now() - HOUR_MS;
    await commit(at);
    const made = await operatedMailroom(open());
    const audit = createAudit({ ...made, rules: { describe: async () => undefined } });
    const report = await audit.run({ since: at - HOUR_MS, until: Date.now() });
    expect(report).toMatchObject({ events: 1, published: 1, missing: [] });
  });

  test('events list has it among the published ones, in their order, and a relay cannot publish it', async () => {
    const at = Date.now() - 10 * MINUTE_MS;
    const ids = [await commit(at), await publish(at + 1), await commit(at + 2), await publish(at + 3)];
    const made = await operatedMailroom(open());
    const listed = async (...argv: string[]) =>
      (await jsonOf(made, 'events', 'list', ...argv)).events.map(
        ({ eventId, publishedBy }: { eventId: string; publishedBy?: string }) => [eventId, publishedBy],
      );
    const by = (index: number) => (index % 2 === 0 ? 'cdc' : 'relay');
    expect(await listed('--published')).toEqual(ids.map((id, index) => [id, by(index)]).toReversed());
    expect(await listed('--published', '--limit', '3')).toHaveLength(3);
    expect(await listed()).toEqual([]);
    const pages = made.stored.outbox.inMinute(
      new Date(at).toISOString().slice(0, 16),
      0,
      { pageSize: 1, source: 'orders' },
      ({ SK }) => SK.slice('EVENT#'.length),
    );
    const paged: string[] = [];
    for await (const { items } of pages) paged.push(...items);
    expect(paged).toEqual(ids.filter((id) => paged.includes(id)));
    expect(paged.length).toBeGreaterThan(0);
    await expect(
      jsonOf(made, 'events', 'republish', ids[0] ?? '', '--apply', '--reason', 'lost'),
    ).rejects.toThrow('NOT_PUBLISHED');
  });
}
