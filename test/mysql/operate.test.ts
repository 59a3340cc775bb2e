import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openMysql } from '../../cli/deployment/mysql-database.ts';
import { mysqlRows } from '../../cli/deployment/mysql-rows.ts';
import { runMailroom } from '../../cli/program.ts';
import { runChecks } from '../../cli/reports/checks/check.ts';
import { mysqlChecks } from '../../cli/reports/checks/mysql-checks.ts';
import { HOUR_MS } from '../../lambdas/runtime/base/units.ts';
import { createAudit } from '../../lambdas/runtime/operations/audit/audit.ts';
import { eventIdTime, minuteOf } from '../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { ID, idParameter, KEY, NOW, textParameter } from '../../lambdas/runtime/store/mysql/expressions.ts';
import { SCHEMA_VERSION } from '../../lambdas/runtime/store/mysql/migrate.ts';
import { serverProblems } from '../../lambdas/runtime/store/mysql/server-check.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import { capturedIo } from '../support/captured-io.ts';
import { jsonOf, operatedMailroom } from '../support/operated-mailroom.ts';
import { runInMemory } from '../unit/cli/support/run-in-memory.ts';
import {
  deadEvent,
  message,
  type Operated,
  pendingEvent,
  publishedEvent,
  startOperated,
  storedEvent,
} from './support/operated.ts';

let operated: Operated;

beforeAll(async () => {
  operated = await startOperated('mysql-operate');
});
afterAll(() => operated.close());
beforeEach(() => operated.clear());

const mailroom = (...items: readonly Item[]) => operatedMailroom(operated.open, items);
const json = async (...argv: string[]) => jsonOf(await mailroom(), ...argv);

async function run(...argv: string[]) {
  const { io, written } = capturedIo();
  const code = await runMailroom(argv, io);
  return { code, out: written.out.replaceAll(/\s+/g, ' '), err: written.err.replaceAll(/\s+/g, ' ') };
}

test('status counts the events that wait, also old ones, and those that are dead', async () => {
  const old = await pendingEvent(operated, Date.now() - 86_400_000);
  await deadEvent(operated);
  const { outbox } = await json('status');
  expect(outbox).toMatchObject({ pending: 1, dead: 1, unreadable: 0, oldestPendingMs: 0 });
  expect(outbox.inDatabase).toMatchObject({ pending: 1, oldest: old });
  expect(outbox.inDatabase.oldestPendingMs).toBeGreaterThanOrEqual(86_400_000);
});

test('an event is listed under the status that it is shown with, and under no other', async () => {
  const dead = await deadEvent(operated);
  await operated.rows(
    `INSERT INTO mailroom.published (event_id, published_at) VALUES (${ID}, ${NOW})`,
    idParameter(dead),
  );
  const cancelled = await storedEvent(operated, Date.now() - 60_000);
  await operated.rows(`INSERT INTO mailroom.cancelled VALUES (${ID}, ${NOW})`, idParameter(cancelled));
  const pending = await pendingEvent(operated);
  const { outbox } = mysqlRows(operated.open.whole);
  const listed = async (status: 'PENDING' | 'DEAD' | 'PUBLISHED' | 'CANCELLED') => {
    const found = new Set<string>();
    for (const minute of new Set([dead, cancelled, pending].map((id) => minuteOf(eventIdTime(id)))))
      for await (const { items } of outbox.inMinute(minute, 0, { status, source: 'things' }, ({ SK }) => SK))
        for (const key of items) found.add(key.replace('EVENT#', ''));
    return [...found];
  };
  expect(await listed('PENDING')).toEqual([pending]);
  expect(await listed('DEAD')).toEqual([dead]);
  expect(await listed('PUBLISHED')).toEqual([]);
  expect(await listed('CANCELLED')).toEqual([cancelled]);
});

test('why finds an event by its id, the beginning of it, and its aggregate, with its message and effects', async () => {
  const at = Date.now() - 60_000;
  const eventId = await storedEvent(operated, at, 'order-7');
  await operated.rows(
    `INSERT INTO mailroom.published (event_id, published_at) VALUES (${ID}, ${NOW})`,
    idParameter(eventId),
  );
  await message(
    operated,
    eventId,
    'FAILED',
    `fence = 'f', attempts = 1, retry_at = ${NOW} + INTERVAL 1 MINUTE, last_error = 'the bank is closed 🚀', fingerprint = 'worker Error', past_attempts = '[]'`,
  );
  for (const name of ['charge', 'mail'])
    await operated.rows(
      `INSERT INTO mailroom.effect (consumer, event_id, name, status, fence, run, started_at, ends_by, ended_at, error)
        VALUES ('worker', ${KEY}, '${name}', 'RELEASED', 'f', 1, ${NOW}, ${NOW}, ${NOW}, 'no answer')`,
      textParameter(eventId),
    );
  for (const id of [eventId, eventId.slice(0, 18), 'order-7']) {
    const { verdict, events } = await json('why', id);
    expect(verdict).toMatchObject({ state: 'retrying', eventId, consumer: 'worker' });
    expect(JSON.stringify(events)).toContain('the bank is closed 🚀');
  }
  const { row } = { row: await mysqlRows(operated.open.whole).inbox.byEvent('worker', eventId) };
  expect(Object.keys(Object(row).effects)).toEqual(['charge', 'mail']);
  expect(JSON.stringify(await json('messages', 'list', '--failed'))).toContain(eventId);
  expect(JSON.stringify(await json('why', eventId, '--payload'))).toContain('日本 🚀');
});

test('why says that an event is scheduled, that it was cancelled, and how to queue one that was lost', async () => {
  const eventId = await pendingEvent(operated, Date.now() + 3_600_000);
  expect(await json('why', eventId)).toMatchObject({ verdict: { state: 'scheduled' } });
  await operated.rows('DELETE FROM mailroom.pending');
  const lost = await json('why', eventId);
  expect(lost.verdict).toMatchObject({ state: 'unreadable' });
  const [, statement = ''] = /-e '(.*)'$/.exec(lost.verdict.next.replaceAll("'\\''", "'")) ?? [];
  await operated.rows(statement);
  expect((await operated.rows('SELECT 1 FROM mailroom.pending')).length).toBe(1);
  await operated.rows('DELETE FROM mailroom.pending');
  await operated.rows(`INSERT INTO mailroom.cancelled VALUES (${ID}, ${NOW})`, idParameter(eventId));
  expect(await json('why', eventId)).toMatchObject({ verdict: { state: 'cancelled' } });
});

test('dead events and rejected messages are listed', async () => {
  const dead = await deadEvent(operated);
  const listed = JSON.stringify(await json('dlq', 'list', 'dead'));
  expect(listed).toContain(dead);
  expect(listed).toContain('Detail is not valid');
  const eventId = await storedEvent(operated, Date.now() - 60_000);
  await message(
    operated,
    eventId,
    'REJECTED',
    `fence = 'f', attempts = 1, rejected_at = ${NOW}, rejected_ids = ',"m1"', reason = 'POISON_MESSAGE', last_error = 'no such order', fingerprint = 'worker POISON'`,
  );
  expect(JSON.stringify(await json('messages', 'list'))).toContain('no such order');
});

test('an event that a consumer has in DynamoDB is processed, for why and for the audit', async () => {
  const at = Date.now() - HOUR_MS;
  const [eventId, unreceived] = [await publishedEvent(operated, at), await publishedEvent(operated, at)];
  const key = inboxKey('worker', eventId);
  const row = {
    ...key,
    schema: SCHEMA,
    type: 'ThingHappened',
    status: 'PROCESSED',
    attempts: 1,
    processedAt: at,
  };
  const made = await mailroom({ ...row });
  expect(await jsonOf(made, 'why', eventId)).toMatchObject({ verdict: { state: 'processed' } });
  const audit = createAudit({ ...made, rules: { describe: async () => undefined } });
  const report = await audit.run({ since: at - HOUR_MS, until: Date.now() });
  expect(report).toMatchObject({ events: 2, published: 2, missing: [{ eventId: unreceived }] });
});

test('doctor finds a stuck event, a silent connector and each setting that can lose events', async () => {
  await pendingEvent(operated, Date.now() - 900_000, Date.now() - 600_000);
  const problems = async () => (await runChecks(mysqlChecks(operated.open, () => Date.now()))).problems;
  expect((await problems()).map(({ problem }) => problem)).toEqual(['pending-stuck']);
  await operated.rows(`INSERT INTO mailroom.capture VALUES ('shop', 7, ${NOW}, ${NOW} - INTERVAL 10 MINUTE)`);
  expect(await problems()).toContainEqual(
    expect.objectContaining({
      problem: 'capture-behind',
      text: expect.stringContaining('shop has sent no heartbeat for 10 minutes'),
    }),
  );
  const settings = (await problems()).filter(({ problem }) => problem === 'capture-setting');
  expect(settings.map(({ text }) => text.split(' ')[0])).toEqual([
    'log_bin',
    'binlog_format',
    'binlog_do_db',
  ]);
  await operated.rows('DELETE FROM mailroom.capture');
  await operated.rows("SET GLOBAL sql_mode = ''");
  await operated.rows('CREATE TABLE mailroom.copy LIKE mailroom.dead');
  await operated.rows('ALTER TABLE mailroom.discarded ENGINE = MyISAM');
  const careless = await openMysql(operated.urlOf('ada'));
  try {
    const found = (await runChecks(mysqlChecks(careless, () => Date.now()))).problems;
    expect(found.map(({ problem, text }) => [problem, text.split(' ')[0]])).toEqual([
      ['database-setting', 'sql_mode'],
      ['database-setting', 'The'],
      ['pending-stuck', 'an'],
    ]);
  } finally {
    await careless.end();
    await operated.rows('SET GLOBAL sql_mode = DEFAULT');
    await operated.rows('ALTER TABLE mailroom.discarded ENGINE = InnoDB');
    await operated.rows('DROP TABLE mailroom.copy');
  }
});

test('a decision for a consumer whose inbox is in PostgreSQL is refused, and changes nothing', async () => {
  const eventId = await storedEvent(operated, Date.now() - 60_000);
  await message(
    operated,
    eventId,
    'FAILED',
    `fence = 'f', attempts = 1, last_error = 'no bank', fingerprint = 'x'`,
  );
  const made = await operatedMailroom(operated.open, [], undefined, 'postgres');
  const refused = { code: 'NOT_IN_DATABASE', message: expect.stringContaining('--database postgresql://') };
  const note = { by: 'ada', reason: 'charged by phone' };
  const { inboxChanges } = made;
  await expect(inboxChanges.read('worker', eventId)).rejects.toMatchObject(refused);
  await expect(inboxChanges.allow('worker', { eventId, ...note })).rejects.toMatchObject(refused);
  const argv = ['messages', 'resolve', 'worker', eventId, '--reason', 'charged by phone', '--apply'];
  const { code, err } = await runInMemory(made, [...argv, '--json']);
  expect({ code, error: JSON.parse(err).error }).toMatchObject({ code: 2, error: refused });
  expect(await operated.rows('SELECT status FROM mailroom.inbox')).toEqual([{ status: 'FAILED' }]);
  expect(await operated.rows('SELECT 1 FROM mailroom.operation')).toEqual([]);
  const own = await operatedMailroom(operated.open, [], undefined, 'mysql');
  expect((await runInMemory(own, argv)).code).toBe(0);
  expect(await operated.rows('SELECT status FROM mailroom.inbox')).toEqual([{ status: 'PROCESSED' }]);
});

test('migrates, prints its statements, and refuses a schema of a newer version', async () => {
  const url = operated.urlOf('root');
  expect(await run('mysql', 'migrate', '--database', url)).toMatchObject({
    code: 0,
    out: expect.stringContaining(`has version ${SCHEMA_VERSION}. Nothing was changed.`),
  });
  const { out } = await run('mysql', 'migrate', '--sql', '--json');
  const { migrations } = JSON.parse(out);
  await operated.rows('DROP DATABASE mailroom');
  for (const { sql } of migrations)
    for (const statement of sql.replaceAll(/^DELIMITER .*$/gm, '').split('$$'))
      if (statement.trim() !== '') await operated.rows(statement);
  expect((await operated.rows('SELECT MAX(version) AS v FROM mailroom.migration'))[0]?.v).toBe(
    SCHEMA_VERSION,
  );
  expect(await serverProblems(operated.open.database)).toEqual([]);
  await operated.rows(`INSERT INTO mailroom.migration VALUES (${SCHEMA_VERSION + 1}, ${NOW})`);
  expect(await run('mysql', 'migrate', '--database', url)).toMatchObject({
    code: 2,
    err: expect.stringContaining('NEWER_SCHEMA'),
  });
  await operated.rows(`DELETE FROM mailroom.migration WHERE version > ${SCHEMA_VERSION}`);
});

test('an address that cannot be used, and a login that is refused, name the remedy and no password', async () => {
  for (const [url, remedy] of [
    ['mysql://127.0.0.1', 'it has no user'],
    ['postgresql://ada@127.0.0.1', 'it is not a mysql:// URL'],
    ['mysql://ada:secret@127.0.0.1?sslmode=off', 'the parameter "sslmode" is not supported'],
  ] as const) {
    const { code, err } = await run('mysql', 'migrate', '--database', url);
    expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining(remedy) });
    expect(err).not.toContain('secret');
  }
  const wrong = await run(
    'mysql',
    'requeue',
    '--reason',
    'the bus is back',
    '--database',
    operated.urlOf('ada:secret'),
  );
  expect(wrong.err).toContain('BAD_CREDENTIALS');
  expect(wrong.err).not.toContain('secret');
  const closed = await run('mysql', 'migrate', '--database', 'mysql://ada@127.0.0.1:1');
  expect(closed.err).toContain('does not respond');
  const encrypted = await run('mysql', 'migrate', '--database', `${operated.urlOf('ada')}?ssl-mode=REQUIRED`);
  expect(encrypted.err).toContain('ssl-mode=DISABLED');
});

test('a login without rights, tables that are missing or were changed, and a replica are refused with the remedy', async () => {
  await operated.rows("CREATE USER 'mallory'@'%'");
  const mallory = await openMysql(operated.urlOf('mallory'));
  await expect(mysqlRows(mallory.whole).createdAt()).rejects.toMatchObject({
    code: 'ACCESS_DENIED',
    message: expect.stringContaining('GRANT SELECT, INSERT, UPDATE, DELETE ON mailroom.*'),
  });
  await mallory.end();
  const { deadLetters } = mysqlRows(operated.open.whole);
  await operated.rows('RENAME TABLE mailroom.dead TO mailroom.gone');
  await expect(deadLetters.dead([0], 1)).rejects.toMatchObject({
    code: 'BAD_MYSQL',
    message: expect.stringContaining('were changed by hand'),
  });
  await operated.rows(`DELETE FROM mailroom.migration WHERE version = ${SCHEMA_VERSION}`);
  await expect(deadLetters.dead([0], 1)).rejects.toMatchObject({
    code: 'BAD_MYSQL',
    message: expect.stringContaining('npx cdk-mailroom mysql migrate'),
  });
  await operated.rows(`INSERT INTO mailroom.migration VALUES (${SCHEMA_VERSION}, ${NOW})`);
  await operated.rows('RENAME TABLE mailroom.gone TO mailroom.dead');
  await operated.rows('SET GLOBAL read_only = 1');
  const replica = await openMysql(operated.urlOf('ada'));
  try {
    await expect(mysqlRows(replica.whole).createdAt()).rejects.toMatchObject({ code: 'BAD_DATABASE' });
  } finally {
    await replica.end();
    await operated.rows('SET GLOBAL read_only = 0');
  }
});
