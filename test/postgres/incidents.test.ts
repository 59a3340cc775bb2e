import { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createPostgresRelay } from '../../lambdas/runtime/postgres.ts';
import { memoryBus } from '../../testing/index.ts';
import { unwrapped } from '../support/captured-io.ts';
import { runInMemory } from '../unit/cli/support/run-in-memory.ts';
import { mailroomWith, type Operated, relayPartsOf, startOperated, storedEvent } from './support/operated.ts';

const MINUTES_MS = 10 * 60_000;

let operated: Operated;

beforeAll(async () => {
  operated = await startOperated('incidents');
});

afterAll(() => operated.close());

beforeEach(() => operated.clear());

/** Runs a command as an operator. */
async function run(...argv: string[]) {
  const { code, out, err } = await runInMemory(await mailroomWith(operated), argv);
  return { code, text: unwrapped(out + err) };
}

/** An event that was committed ten minutes ago. @param due - an interval from now */
async function queued(due = '-10 min'): Promise<string> {
  const eventId = await storedEvent(operated, Date.now() - MINUTES_MS);
  await operated.pool.query(
    'INSERT INTO mailroom.pending (event_id, due_at) VALUES ($1, clock_timestamp() + $2::interval)',
    [eventId, due],
  );
  return eventId;
}

/** Runs the statement that a text ends with, as the owner. */
async function paste(text: string): Promise<void> {
  const [, statement = ''] = /psql -c '(.*)'(?: --stage dev)?$/.exec(text.trim()) ?? [];
  expect(statement).not.toBe('');
  await operated.pool.query(statement.replaceAll(`'\\''`, "'"));
}

/** One pass of a relay of the database. @returns the ids that it published */
async function relayed(): Promise<string[]> {
  const parts = relayPartsOf(operated);
  const bus = memoryBus({ clock: parts.clock });
  await createPostgresRelay({ ...parts, bus }).pass();
  return bus.published().map(({ detail }) => JSON.parse(detail).eventId);
}

test('an event whose relay does not run: status and why say so, and neither suggests a sweep, which publishes nothing of PostgreSQL', async () => {
  const eventId = await queued();
  const status = await run('status');
  expect(status.code).toBe(1);
  expect(status.text).toMatch(/due for 1\d min( \d+ s)?: no relay is connected.*aws lambda list-functions/);
  const why = await run('why', '42');
  expect(why.text).toMatch(
    /^stuck .*waiting in PostgreSQL.*no relay is connected.*aws lambda list-functions/,
  );
  for (const { text } of [status, why]) expect(text).not.toMatch(/sweep --since|in shard|events list/);
  expect(await relayed()).toEqual([eventId]);
  expect((await run('status')).text).not.toContain('pending-stuck');
});

test('an event whose row another session has locked: status and why name the session, and it is published once that is ended', async () => {
  const eventId = await queued();
  const session = new Client({ connectionString: operated.server.url, application_name: 'repair script' });
  session.on('error', () => {});
  await session.connect();
  await session.query('BEGIN');
  await session.query('SELECT * FROM mailroom.pending WHERE event_id = $1 FOR UPDATE', [eventId]);
  expect(await relayed()).toEqual([]);
  expect((await run('status')).text).toContain('(repair script) has locked the queue');
  const { text } = await run('why', eventId);
  expect(text).toMatch(/^stuck .*\(repair script\) has locked the queue/);
  await paste(text);
  await expect.poll(relayed).toEqual([eventId]);
});

test('an event whose due time was changed by hand to a later year: status names it, and why the statement that makes it due', async () => {
  const eventId = await queued('9 years');
  const status = await run('status');
  expect(status.text).toMatch(
    new RegExp(
      `1 event pending, the oldest for 1\\d min( \\d+ s)?: leased until .*changed by hand.* why ${eventId}`,
    ),
  );
  expect(await relayed()).toEqual([]);
  const { text } = await run('why', eventId);
  expect(text).toMatch(/^stuck .*no relay puts it off for that long/);
  await paste(text);
  expect(await relayed()).toEqual([eventId]);
});

test('an event whose row of the queue was deleted: why queues it again', async () => {
  const eventId = await storedEvent(operated, Date.now() - MINUTES_MS);
  expect((await run('status')).code).toBe(1);
  const { text } = await run('why', eventId);
  expect(text).toMatch(/^unreadable .*neither queued nor published/);
  expect(text).not.toContain('dynamodb');
  await paste(text);
  expect(await relayed()).toEqual([eventId]);
});

test('a column that was renamed by hand is not blamed on a missing migration', async () => {
  await queued();
  const { pool } = operated;
  await pool.query('ALTER TABLE mailroom.inbox RENAME COLUMN attempts TO tries');
  const { code, text } = await run('status');
  await pool.query('ALTER TABLE mailroom.inbox RENAME COLUMN tries TO attempts');
  expect(code).toBe(2);
  expect(text).toMatch(/changed by hand \(column i\.attempts does not exist\).*a migration changes nothing/);
});
