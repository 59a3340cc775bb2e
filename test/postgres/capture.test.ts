import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { postgresMailroomRows } from '../../lambdas/runtime/store/postgres/mailroom-rows.ts';
import type { Sql } from '../../lambdas/runtime/store/postgres/sql.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { runNamed } from '../support/named-command.ts';
import { type CaptureRig, startCapture } from './support/capture-rig.ts';
import { PRODUCER, placed, type Rig } from './support/rig.ts';

const WEEK_AGO = 7 * 24 * 3_600_000;

let capture: CaptureRig;
let rig: Rig;

beforeAll(async () => {
  capture = await startCapture('capture');
  rig = capture.rig;
});
beforeEach(() => capture.clear());
afterAll(() => capture.close());

/** An outbox of events that are left to change data capture. @param change - of its statements */
const outboxOf = (change: (text: string) => string = (text) => text) => {
  const changed = ({ query }: Sql): Sql => ({ query: (text, values) => query(change(text), values) });
  const database = {
    ...rig.database,
    in: (tx: Parameters<typeof rig.database.in>[0]) => changed(rig.database.in(tx)),
  };
  return createPostgresOutbox({ config: PRODUCER, database, relay: 'cdc', telemetry: memoryTelemetry() });
};

test("with relay 'cdc', a commit writes the event, its aggregate, and no place in the queue", async () => {
  const id = await capture.commit(1);
  expect(await rig.rows('SELECT event_id::text, published_by, aggregate_type FROM mailroom.event')).toEqual([
    { event_id: id, published_by: 'cdc', aggregate_type: 'order' },
  ]);
  expect(await rig.rows('SELECT FROM mailroom.pending')).toEqual([]);
  const stored = await postgresMailroomRows(rig.database).outbox.byId(id);
  expect(stored).toMatchObject({ status: 'PUBLISHED', publishedBy: 'cdc' });
});

test('an event that change data capture cannot publish is refused before anything is sent', async () => {
  const refused = (draft: object) =>
    expect(outboxOf().commit(async () => [{ ...placed(1), ...draft }])).rejects.toMatchObject({
      code: 'INVALID_EVENT',
    });
  await refused({ deliverAt: Date.now() + 60_000 });
  await refused({ aggregateId: 'x'.repeat(1_025) });
  await refused({ aggregateId: '\u0000' });
  expect(await rig.rows('SELECT FROM mailroom.event')).toEqual([]);
  expect(() =>
    createPostgresOutbox({ config: PRODUCER, database: rig.database, relay: 'kafka' as 'cdc' }),
  ).toThrow(/relay is "kafka"/);
});

test('a row without a key, or with one that is too long, is refused by the database', async () => {
  const insert = (type: string | null, id: string | null) =>
    rig.pool.query(
      `INSERT INTO mailroom.event (event_id, source, type, envelope, aggregate_type, aggregate_id, published_by)
       VALUES ('019b76da-a800-7000-8000-000000000001', 'orders', 'Placed', '{}', $1, $2, 'cdc')`,
      [type, id],
    );
  for (const [type, id] of [
    [null, 'a'],
    ['a', null],
    ['', 'a'],
    ['a', 'x'.repeat(1_025)],
  ] as const)
    await expect(insert(type, id)).rejects.toMatchObject({ code: '23514' });
});

test('a connector reads only the events that are left to it, and calls only its retention', async () => {
  await rig.outbox.commit(async () => [placed(1)]);
  const id = await capture.commit(2);
  const { rows } = await capture.connector.query('SELECT event_id::text AS id FROM mailroom.event');
  expect(rows).toEqual([{ id }]);
  await expect(capture.connector.query('SELECT FROM mailroom.inbox')).rejects.toMatchObject({
    code: '42501',
  });
  await expect(capture.connector.query('DELETE FROM mailroom.event')).rejects.toMatchObject({
    code: '42501',
  });
  await expect(
    capture.connector.query("SELECT mailroom.delete_captured('x', interval '1 s')"),
  ).rejects.toMatchObject({
    code: '22023',
  });
});

test('hole: without its mark, an event is neither captured nor in the queue', async () => {
  const unmarked = outboxOf((text) => {
    expect(text).toContain('envelope, published_by, CASE');
    return text.replace('envelope, published_by, CASE', 'envelope, NULL, CASE');
  });
  const [event] = await unmarked.commit(async () => [placed(1)]);
  const stored = await postgresMailroomRows(rig.database).outbox.byId(event?.eventId ?? '');
  expect(stored).not.toMatchObject({ status: 'PUBLISHED' });
});

test('a slot that was lost is a finding with its remedy', async () => {
  await capture.createSlot();
  await capture.commit(1, Date.now() - WEEK_AGO);
  await capture.loseSlot();
  const found = await capture.problems();
  expect(found.map(({ problem }) => problem)).toEqual(['slot-lost', 'capture-behind']);
  expect(found[0]?.text).toContain('drop the slot');
});

test('a slot that reads nothing, and one that does not exist any more, are findings beside one that reads', async () => {
  await capture.createSlot();
  await capture.createSlot('second');
  await capture.retain();
  await capture.retain('1 day', 'second');
  await capture.commit(1, Date.now() - WEEK_AGO);
  await capture.confirm();
  await capture.retain();
  await rig.pool.query("UPDATE mailroom.capture SET captured_until = now() WHERE slot = 'mailroom'");
  const behind = await capture.problems();
  expect(behind.map(({ problem }) => problem)).toEqual(['capture-behind']);
  expect(behind[0]?.text).toContain('the slot second has not confirmed them');
  await capture.dropSlot('second');
  const [gone] = await capture.problems();
  expect(gone?.text).toContain('the slot second does not exist');
  expect(gone?.text).toContain("DELETE FROM mailroom.capture WHERE slot = 'second'");
});

test('a slot that is not read since a clock was set back is a finding', async () => {
  await capture.createSlot();
  await capture.retain();
  await capture.confirm();
  await capture.retain();
  await capture.commit(1, Date.now() - WEEK_AGO);
  await rig.pool.query("UPDATE mailroom.capture SET captured_until = now() + interval '1 hour'");
  expect((await capture.problems())[0]?.text).toContain('the slot mailroom has not confirmed them');
  await capture.confirm();
  await capture.retain();
  expect(await capture.problems()).toEqual([]);
});

test('events that no slot reads are a finding', async () => {
  await capture.commit(1, Date.now() - WEEK_AGO);
  const found = await capture.problems();
  expect(found).toMatchObject([{ problem: 'capture-behind' }]);
  expect(found[0]?.text).toContain('no replication slot');
  expect(await runNamed(found[0]?.text)).toEqual([0]);
});
