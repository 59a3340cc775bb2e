import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { sendInPlace } from '../../cli/changes/resend/send-in-place.ts';
import { inboxChangesOf } from '../../cli/deployment/combined-inbox-changes.ts';
import { combinedRows } from '../../cli/deployment/combined-rows.ts';
import { dynamoRows } from '../../cli/deployment/dynamo-rows.ts';
import { guardedTable } from '../../cli/deployment/guarded-table.ts';
import { type OpenPostgres, openPostgres } from '../../cli/deployment/postgres-database.ts';
import { postgresRows } from '../../cli/deployment/postgres-rows.ts';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import { PoisonMessage } from '../../lambdas/runtime/base/errors.ts';
import { DAY_MS } from '../../lambdas/runtime/base/units.ts';
import type { LeasedContext } from '../../lambdas/runtime/consume/handler.ts';
import { asSeen, NOT_FINAL } from '../../lambdas/runtime/inbox/inbox-conditions.ts';
import { wasSettledUnread } from '../../lambdas/runtime/inbox/inbox-history.ts';
import { mintEventId, systemRandomBytes, unreadableId } from '../../lambdas/runtime/store/event-id.ts';
import { inboxHistoryKey, inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { postgresInbox } from '../../lambdas/runtime/store/postgres/inbox.ts';
import { grantPostgresRole } from '../../lambdas/runtime/store/postgres/migrate.ts';
import type { Sql } from '../../lambdas/runtime/store/postgres/sql.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import { readable } from '../../lambdas/runtime/store/stored-rows.ts';
import { consumerConfig, ThingHappened } from '../support/runtime-rig.ts';
import { mailroomInMemory, worker } from '../unit/cli/support/mailroom-in-memory.ts';
import { runInMemory } from '../unit/cli/support/run-in-memory.ts';
import { newEventId, postgresConsumer, postgresHandlers } from './consumer-parts.ts';
import { LEASE_MS, migratedPostgres, shift, testOutbox } from './inbox-rig.ts';
import { startCuttingProxy } from './support/cutting-proxy.ts';

let server: Awaited<ReturnType<typeof migratedPostgres>>;
let ada: OpenPostgres;

beforeAll(async () => {
  server = await migratedPostgres('operator-decisions');
  await server.pool.query('CREATE ROLE ada LOGIN');
  await grantPostgresRole(server.database, { login: 'ada', role: 'mailroom_operator' });
  ada = await openPostgres(`postgresql://ada@127.0.0.1:${server.server.port}/postgres`);
});
beforeEach(() =>
  server.pool.query(
    'TRUNCATE mailroom.inbox, mailroom.effect, mailroom.inbox_retention, mailroom.operation, mailroom.last_sequence, payment',
  ),
);
afterAll(async () => {
  await ada.end();
  await server.close();
});

/** A Mailroom with rows in both stores, whose consumer has its inbox in PostgreSQL, as the operator's login reaches it. */
function mailroom({ inPostgres = true, postgres = ada } = {}) {
  const made = mailroomInMemory([]);
  const clock = { ...made.clock, now: () => Date.now() };
  const entry = inPostgres ? { ...worker, inbox: 'postgres' as const } : worker;
  const directory = { ...made.directory, consumers: [entry] };
  const rows = postgresRows(postgres.whole);
  const inTable = dynamoRows(made.memory);
  const parts = { database: postgres, inDatabase: rows, table: made.memory, inTable, clock, directory };
  return {
    ...made,
    clock,
    directory,
    database: postgres,
    table: guardedTable(made.memory, rows),
    stored: combinedRows(rows, inTable, directory),
    inboxChanges: inboxChangesOf(parts),
  };
}

async function run(made: ReturnType<typeof mailroom>, ...argv: string[]) {
  const { code, out, err } = await runInMemory(made, [...argv, '--json']);
  return { code, json: out === '' ? undefined : JSON.parse(out), err };
}

const REASON = ['--reason', 'charged by phone', '--apply'];

const resolve = (made: ReturnType<typeof mailroom>, eventId: string, ...options: string[]) =>
  run(made, 'messages', 'resolve', 'worker', eventId, ...options, ...REASON);

const row = async (eventId: string) =>
  (await server.pool.query('SELECT * FROM mailroom.inbox WHERE event_id = $1', [eventId])).rows[0];

/** A consumer whose handler pays, and what it does before. */
function paying(before: () => Promise<void> = async () => {}) {
  const { leased } = postgresHandlers(server.database);
  const paid: string[] = [];
  const charge = async (event: { readonly eventId: string }, ctx: LeasedContext) => {
    await before();
    await ctx.once('charge', async () => ({ id: 1 }));
    paid.push(event.eventId);
  };
  const handler = leased(ThingHappened, charge, { expiresInMs: DAY_MS });
  return { paid, ...postgresConsumer(server.database, [handler]) };
}

/** A message whose handler has failed once. */
async function failed(error: Error = new Error('the bank is closed')): Promise<string> {
  const eventId = newEventId();
  const { deliver } = paying(async () => {
    throw error;
  });
  await deliver(eventId);
  return eventId;
}

/** A message whose worker holds it, and was stopped. */
async function held(): Promise<string> {
  const eventId = await failed();
  await server.pool.query(
    `UPDATE mailroom.inbox SET status = 'PROCESSING', claimed_at = clock_timestamp(), lease_until = clock_timestamp() + $2::float8 * interval '1 ms'
      WHERE event_id = $1`,
    [eventId, LEASE_MS],
  );
  return eventId;
}

/** A message that was claimed, whose lease was removed by hand. */
async function unleased(): Promise<string> {
  const eventId = await held();
  await server.pool.query('UPDATE mailroom.inbox SET lease_until = NULL WHERE event_id = $1', [eventId]);
  return eventId;
}

/** A message whose handler has charged, and failed then. */
async function charged(): Promise<string> {
  const eventId = newEventId();
  const { leased } = postgresHandlers(server.database);
  const handler = leased(ThingHappened, async (_event, ctx) => {
    await ctx.once('charge', async () => ({ id: 1 }));
    throw new Error('the bank is closed');
  });
  await postgresConsumer(server.database, [handler]).deliver(eventId);
  return eventId;
}

/** The dead letter of a message. */
function deadLetter(eventId: string) {
  const { source, type, version } = ThingHappened;
  const of = {
    eventId,
    type,
    version,
    aggregateType: 'Thing',
    aggregateId: 'thing-1',
    correlationId: 'chain',
  };
  const detail = { ...of, occurredAt: Date.now(), data: { n: 1 } };
  const body = JSON.stringify({ source, 'detail-type': type, detail });
  return { messageId: 'dead', receiptHandle: 'dead', body, sentAt: Date.now(), attributes: {} };
}

const effects = async () => (await server.pool.query('SELECT name, status FROM mailroom.effect')).rows;

describe('messages resolve', () => {
  test('sets a failed message PROCESSED, and its redelivery does not run', async () => {
    const eventId = await failed();
    const made = mailroom();
    const planned = await run(made, 'messages', 'resolve', 'worker', eventId);
    expect(planned.json).toMatchObject({ applied: false, status: 'resolve' });
    expect(await resolve(made, eventId)).toMatchObject({ code: 0, json: { status: 'resolved' } });
    expect(await row(eventId)).toMatchObject({
      status: 'PROCESSED',
      resolved_by: 'arn:aws:sts::111122223333:assumed-role/ops/ada',
      resolved_reason: 'charged by phone',
      retry_at: null,
    });
    const { paid, deliver } = paying();
    expect(await deliver(eventId, 2)).toEqual([]);
    expect(paid).toEqual([]);
    expect(await resolve(made, eventId)).toMatchObject({ code: 0, json: { status: 'resolved' } });
    expect((await run(made, 'operations')).json.operations).toMatchObject([
      { command: 'postgres resolve', by: 'ada', subject: `worker ${eventId}`, reason: 'charged by phone' },
      { command: 'messages resolve' },
    ]);
    expect(made.memory.items().filter(({ PK }) => String(PK).startsWith('INBOX#'))).toEqual([]);
  });

  test('leaves a message to a worker that holds it, and takes it by force: the worker changes nothing more', async () => {
    const eventId = newEventId();
    const made = mailroom();
    const refused: unknown[] = [];
    const { paid, deliver } = paying(async () => {
      refused.push(await resolve(made, eventId));
      refused.push(await resolve(made, eventId, '--force', '--effects-checked'));
    });
    expect(await deliver(eventId)).toEqual([]); // it is absorbed
    expect(refused).toMatchObject([
      { code: 2, err: expect.stringContaining('MESSAGE_LEASED') },
      { code: 0, json: { status: 'resolved' } },
    ]);
    expect(paid).toEqual([]);
    expect(await row(eventId)).toMatchObject({ status: 'PROCESSED', resolved_by: expect.anything() });
    expect(await effects()).toEqual([]);
  });

  test('takes a message whose lease has passed, but not before the clock margin', async () => {
    const eventId = await held();
    await shift(server.database, LEASE_MS + 1_000);
    expect(await resolve(mailroom(), eventId)).toMatchObject({
      code: 2,
      err: expect.stringContaining('MESSAGE_LEASED'),
    });
    await shift(server.database, 60_000);
    expect(await resolve(mailroom(), eventId)).toMatchObject({ json: { status: 'resolved' } });
  });

  test('judges a lease by the clock of the database, not by that of the operator', async () => {
    const eventId = await held();
    const made = mailroom();
    const ahead = { ...made, clock: { ...made.clock, now: () => Date.now() + 10 * LEASE_MS } };
    expect(await resolve(ahead, eventId)).toMatchObject({
      code: 2,
      err: expect.stringContaining('MESSAGE_LEASED'),
    });
    const message = await made.inboxChanges.read('worker', eventId);
    expect(Math.abs((message.now ?? 0) - Date.now())).toBeLessThan(30_000);
  });

  test('needs a check of the effects that the message has, and covers those that were shown', async () => {
    const eventId = await charged();
    const made = mailroom();
    expect(await resolve(made, eventId)).toMatchObject({
      code: 2,
      err: expect.stringContaining('EFFECTS_UNCHECKED'),
    });
    const { json } = await run(made, 'messages', 'resolve', 'worker', eventId, '--effects-checked');
    expect(json).toMatchObject({ status: 'resolve' });
    expect(await resolve(made, eventId, '--effects-checked')).toMatchObject({ json: { status: 'resolved' } });
    expect(await row(eventId)).toMatchObject({ status: 'PROCESSED' });
    expect(await effects()).toMatchObject([{ name: 'charge', status: 'COMPLETED' }]);
  });

  test('gives a message that was never received a final row, which absorbs it', async () => {
    const eventId = newEventId();
    await failed(); // the inbox has started
    expect(await resolve(mailroom(), eventId, '--force')).toMatchObject({ json: { status: 'resolved' } });
    expect(await row(eventId)).toMatchObject({ status: 'PROCESSED', type: 'unknown', attempts: 0 });
    const { paid, deliver } = paying();
    expect(await deliver(eventId)).toEqual([]);
    expect(paid).toEqual([]);
  });

  test('refuses a commit, with what to do instead, and records nothing', async () => {
    const eventId = await failed();
    const made = mailroom();
    const commit = '{"writes":[{"Put":{"Item":{"PK":"PAYMENT#1","SK":"PAYMENT"}}}]}';
    const file = join(await mkdtemp(join(tmpdir(), 'fix-')), 'fix.json');
    await writeFile(file, commit);
    const { code, err } = await resolve(made, eventId, '--commit', file);
    expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining('NOT_IN_DATABASE') });
    expect((await run(made, 'operations')).json.operations).toEqual([]);
    expect(await row(eventId)).toMatchObject({ status: 'FAILED' });
  });
});

describe('dlq discard', () => {
  test('sets the message of a dead letter DISCARDED and deletes the dead letter', async () => {
    const eventId = await failed(new PoisonMessage('no such order'));
    const removed: string[] = [];
    const made = mailroom();
    const queues = {
      ...made.queues,
      remove: async (_url: string, { messageId }: { readonly messageId: string }) => {
        removed.push(messageId);
      },
    };
    made.addDeadLetter(worker.deadLetterQueue, deadLetter(eventId));
    const argv = ['dlq', 'discard', 'consumer:worker', eventId, ...REASON];
    const { code, json, err } = await run({ ...made, queues }, ...argv);
    expect({ code, json, err }).toMatchObject({ code: 0, json: { deadLetters: [{ outcome: 'discarded' }] } });
    expect(removed).toEqual(['dead']);
    expect(await row(eventId)).toMatchObject({
      status: 'DISCARDED',
      discarded_reason: 'charged by phone',
      discarded_at: expect.any(Date),
      reason: null,
    });
    const { paid, deliver } = paying();
    expect(await deliver(eventId, 1, 'second')).toEqual([]);
    expect(paid).toEqual([]);
  });

  test('in favor of an event with other data names that event, and sends it once', async () => {
    const [eventId, replacement] = [await failed(new PoisonMessage('no such order')), newEventId()];
    const made = mailroom();
    const bodies: string[] = [];
    const queues = {
      send: async (_url: string, body: string) => {
        bodies.push(body);
        return 'sent';
      },
    };
    const deps = { ...made, queues };
    const [consumer = worker] = made.directory.consumers;
    const message = { consumer, eventId, row: await made.stored.inbox.byEvent('worker', eventId) };
    const note = { by: 'ada', reason: 'the amount was in euros' };
    await sendInPlace(deps, { ...message, newEventId: replacement, body: 'the first' }, note);
    const other = sendInPlace(deps, { ...message, newEventId: newEventId(), body: 'another' }, note);
    await expect(other).rejects.toMatchObject({ code: 'ALREADY_RESENT' });
    expect(bodies).toEqual(['the first']);
    expect(await row(eventId)).toMatchObject({ status: 'DISCARDED', replaced_by: replacement });
  });

  test('of a message that no version could read keeps its event from running once it can be read', async () => {
    const eventId = newEventId();
    const letter = deadLetter(eventId);
    await failed();
    const decide = async (body: string, status: 'PROCESSED' | 'DISCARDED') => {
      const unread = unreadableId(body);
      const message = await mailroom().inboxChanges.read('worker', unread);
      const note = { eventId: unread, by: 'ada', reason: 'known', fence: 'f' };
      return message.decide({ ...note, status }, asSeen(undefined));
    };
    expect(await decide(letter.body, 'DISCARDED')).toBe('done');
    const other = newEventId();
    const inbox = postgresInbox({
      settings: { ...consumerConfig, clock: systemClock, random: systemRandomBytes },
      database: server.database,
      outbox: testOutbox,
    });
    await inbox.open();
    expect(await wasSettledUnread(inbox.rules, letter.body, inbox.read)).toBe(true);
    expect(await wasSettledUnread(inbox.rules, deadLetter(other).body, inbox.read)).toBe(false);
  });
});

describe('a consumer with its inbox in DynamoDB', () => {
  const history = (made: ReturnType<typeof mailroom>) =>
    made.memory.write({
      Put: {
        Item: {
          ...inboxHistoryKey('worker'),
          schema: SCHEMA,
          retentions: [{ days: 35, since: 1 }],
          changedAt: 1,
        },
      },
    });

  test('has its messages decided there, also beside a database', async () => {
    const made = mailroom({ inPostgres: false });
    await history(made);
    const eventId = newEventId();
    const item = {
      ...inboxKey('worker', eventId),
      schema: SCHEMA,
      type: 'ThingHappened',
      fence: 'f',
      attempts: 1,
    };
    await made.memory.write({ Put: { Item: { ...item, status: 'FAILED' } } });
    expect(await resolve(made, eventId)).toMatchObject({ code: 0, json: { status: 'resolved' } });
    expect(await made.memory.get(inboxKey('worker', eventId))).toMatchObject({ status: 'PROCESSED' });
    expect(await row(eventId)).toBeUndefined();
  });

  test('and a row from before it moved is left unchanged, in either direction', async () => {
    const made = mailroom({ inPostgres: false });
    await history(made);
    const eventId = await failed();
    const refused = { code: 2, err: expect.stringContaining('NOT_IN_DATABASE') };
    expect(await resolve(made, eventId)).toMatchObject(refused);
    expect(await row(eventId)).toMatchObject({ status: 'FAILED' });
    const moved = mailroom();
    const old = { ...inboxKey('worker', newEventId()), schema: SCHEMA, type: 'x', fence: 'f', attempts: 1 };
    await moved.memory.write({ Put: { Item: { ...old, status: 'FAILED' } } });
    expect(await resolve(moved, old.PK.slice('INBOX#worker#'.length))).toMatchObject(refused);
    expect(await moved.memory.get({ PK: old.PK, SK: old.SK })).toMatchObject({ status: 'FAILED' });
  });
});

describe('a lost answer', () => {
  test.each(['after', 'before'] as const)(
    'to the COMMIT of a decision, %s it, is looked up',
    async (where) => {
      const proxy = await startCuttingProxy(server.server.port);
      const postgres = await openPostgres(`postgresql://ada@127.0.0.1:${proxy.port}/postgres`);
      const made = mailroom({ postgres });
      for (const act of ['decide', 'allow'] as const) {
        const eventId = await failed(Object.assign(new PoisonMessage('old'), { code: 'EVENT_TOO_OLD' }));
        await server.pool.query("UPDATE mailroom.inbox SET reason = 'EVENT_TOO_OLD' WHERE event_id = $1", [
          eventId,
        ]);
        const message = await made.inboxChanges.read('worker', eventId);
        const note = { eventId, by: 'ada', reason: `known ${where}` };
        proxy.cutNextCommit(where);
        const end =
          act === 'allow'
            ? await made.inboxChanges.allow('worker', note)
            : await message.decide(
                { ...note, status: 'PROCESSED', fence: 'f' },
                asSeen(readable(message.row)),
              );
        const isMade = where === 'after';
        expect(end).toBe(act === 'allow' ? isMade : isMade ? 'done' : 'changed');
        const { status, run_anyway } = await row(eventId);
        expect(act === 'allow' ? run_anyway : status === 'PROCESSED').toBe(isMade);
      }
      await postgres.end();
      await proxy.close();
    },
  );
});

describe('messages allow', () => {
  async function tooOld(): Promise<string> {
    await server.pool.query(
      "INSERT INTO mailroom.inbox_retention (consumer, since, days) VALUES ('worker', now() - interval '100 days', 35)",
    );
    const eventId = mintEventId(Date.now() - 40 * DAY_MS, 2);
    const { paid, deliver } = paying();
    expect(await deliver(eventId)).toEqual(['EVENT_TOO_OLD']);
    expect(await deliver(eventId, 1, 'second')).toEqual(['EVENT_TOO_OLD']);
    expect(paid).toEqual([]);
    return eventId;
  }

  test('lets a message run that was rejected as too old, and would be stale', async () => {
    const eventId = await tooOld();
    const made = mailroom();
    const allowed = await run(made, 'messages', 'allow', 'worker', eventId, ...REASON);
    expect(allowed).toMatchObject({ code: 0, json: { status: 'allowed' } });
    expect(await row(eventId)).toMatchObject({
      status: 'REJECTED',
      run_anyway: true,
      allowed_by: expect.stringContaining('ada'),
      allowed_reason: 'charged by phone',
      allowed_at: expect.any(Date),
    });
    expect(await made.stored.inbox.byEvent('worker', eventId)).toMatchObject({ runAnyway: true });
    const { paid, deliver } = paying();
    expect(await deliver(eventId, 1, 'third')).toEqual([]);
    expect(paid).toEqual([eventId]);
  });

  test('refuses any other message, also one that was rejected for another reason meanwhile', async () => {
    const eventId = await failed(new PoisonMessage('no such order'));
    const made = mailroom();
    const refused = await run(made, 'messages', 'allow', 'worker', eventId, ...REASON);
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining('NOT_TOO_OLD') });
    const note = { eventId, by: 'ada', reason: 'known' };
    expect(await made.inboxChanges.allow('worker', note)).toBe(false);
    expect(await row(eventId)).toMatchObject({ run_anyway: false });
  });
});

describe('a decision loses against', () => {
  const decision = (eventId: string) => ({
    ...({ eventId, status: 'PROCESSED', by: 'ada', reason: 'known', fence: 'of the operator' } as const),
  });

  /** Reads a message, lets something happen, and decides. */
  async function decideAfter(eventId: string, act: () => Promise<unknown>): Promise<string> {
    const message = await mailroom().inboxChanges.read('worker', eventId);
    await act();
    return message.decide(decision(eventId), asSeen(readable(message.row)));
  }

  const set = (eventId: string, what: string) =>
    server.pool.query(`UPDATE mailroom.inbox SET ${what} WHERE event_id = $1`, [eventId]);

  test.each([
    ['a claim', failed, "status = 'PROCESSING', fence = 'next'"],
    ['another claim that failed', failed, "fence = 'next'"],
    ['a takeover', held, "fence = 'next'"],
    ['a renewal', held, "lease_until = lease_until + interval '1 min'"],
    ['a lease that was given to a row without one', unleased, 'lease_until = clock_timestamp()'],
    ['a lease that was removed', held, 'lease_until = NULL'],
  ])('%s', async (_name, open, change) => {
    const eventId = await open();
    expect(await decideAfter(eventId, () => set(eventId, change))).toBe('changed');
    expect(await row(eventId)).not.toMatchObject({ fence: 'of the operator' });
    expect(await decideAfter(eventId, async () => {})).toBe('done');
  });

  test.each([
    [
      'an effect that starts',
      "INSERT INTO mailroom.effect VALUES ('worker', $1, 'refund', 'IN_PROGRESS', 'f', 1, now(), now())",
    ],
    ['an effect that runs again', 'UPDATE mailroom.effect SET run = run + 1 WHERE event_id = $1'],
    ['an effect that ends', "UPDATE mailroom.effect SET status = 'RELEASED' WHERE event_id = $1"],
    ['an effect of another claim', "UPDATE mailroom.effect SET fence = 'next' WHERE event_id = $1"],
    ['an effect that was deleted by hand', 'DELETE FROM mailroom.effect WHERE event_id = $1'],
  ])('%s', async (_name, change) => {
    const eventId = await charged();
    expect(await decideAfter(eventId, () => server.pool.query(change, [eventId]))).toBe('changed');
    expect(await decideAfter(eventId, async () => {})).toBe('done');
  });

  test('a worker that inserts the row', async () => {
    const eventId = newEventId();
    const made = mailroom();
    await failed();
    const message = await made.inboxChanges.read('worker', eventId);
    await paying().deliver(eventId);
    expect(await message.decide(decision(eventId), asSeen(undefined))).toBe('changed');
    expect(await message.decide(decision(eventId), NOT_FINAL)).toBe('changed');
    expect(await row(eventId)).toMatchObject({ status: 'PROCESSED', resolved_by: null });
  });

  test('the end of the message, by force, too', async () => {
    const eventId = await failed();
    const message = await mailroom().inboxChanges.read('worker', eventId);
    await paying().deliver(eventId, 2);
    const discard = { ...decision(eventId), status: 'DISCARDED' } as const;
    expect(await message.decide(discard, NOT_FINAL)).toBe('changed');
    expect(await row(eventId)).toMatchObject({ status: 'PROCESSED' });
  });

  /** An open transaction that has started an effect, as a worker's statement does. */
  async function startingEffect(eventId: string) {
    const client = await server.pool.connect();
    await client.query('BEGIN');
    await client.query('SELECT 1 FROM mailroom.inbox WHERE event_id = $1 FOR NO KEY UPDATE', [eventId]);
    await client.query(
      "INSERT INTO mailroom.effect VALUES ('worker', $1, 'refund', 'IN_PROGRESS', 'f', 1, now(), now())",
      [eventId],
    );
    return async () => {
      await client.query('COMMIT');
      client.release();
    };
  }

  /** Waits until a statement waits for a lock. */
  const oneWaits = () =>
    expect
      .poll(async () => {
        const waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename = 'ada'";
        return (await server.pool.query(waiting)).rows.length;
      })
      .toBeGreaterThan(0);

  test('an effect whose start has not committed yet', async () => {
    const eventId = await failed();
    const end = await startingEffect(eventId);
    const deciding = decideAfter(eventId, async () => {});
    await oneWaits();
    await end();
    expect(await deciding).toBe('changed');
    expect(await row(eventId)).toMatchObject({ status: 'FAILED' });
  });

  test('a transaction that keeps the row locked', async () => {
    const eventId = await failed();
    const end = await startingEffect(eventId);
    expect(await decideAfter(eventId, async () => {})).toBe('changed');
    await end();
  });

  // Each rule has its clause: without it, the decision is made.
  const HOLES: readonly (readonly [
    rule: string,
    clause: RegExp,
    open: () => Promise<string>,
    act: string,
  ])[] = [
    [
      'its fence',
      /i\.fence = \$\d+::text/,
      held,
      "UPDATE mailroom.inbox SET fence = 'next' WHERE event_id = $1",
    ],
    [
      'its lease',
      /round\(extract\(epoch FROM i\.lease_until\)::float8 \* 1000::float8\) = \$\d+::float8/,
      held,
      "UPDATE mailroom.inbox SET lease_until = lease_until + interval '1 min' WHERE event_id = $1",
    ],
    [
      'its effects',
      /coalesce\(\(SELECT pg_catalog\.jsonb_object_agg[\s\S]+?\$\d+::text::jsonb/,
      charged,
      'DELETE FROM mailroom.effect WHERE event_id = $1',
    ],
  ];

  test.each(HOLES)(
    'a change of %s, because the statement has its clause',
    async (_rule, clause, open, act) => {
      const eventId = await open();
      let found = 0;
      const database = rewritten((text) => {
        if (clause.test(text)) found += 1;
        return text.replace(clause, (whole) =>
          whole.replace(/^[\s\S]*(\$\d+::(?:text|float8)).*$/, '$1 IS NOT NULL'),
        );
      });
      const message = await mailroom({ postgres: { ...ada, database } }).inboxChanges.read('worker', eventId);
      await server.pool.query(act, [eventId]);
      expect(await message.decide(decision(eventId), asSeen(readable(message.row)))).toBe('done');
      expect(found).toBe(1);
    },
  );

  test('the start of an effect, because a statement of its own locks the row', async () => {
    const eventId = await failed();
    const database = rewritten((text) =>
      text.includes('FOR NO KEY UPDATE') ? 'SELECT 1 WHERE $1 <> $2' : text,
    );
    const end = await startingEffect(eventId);
    const message = await mailroom({ postgres: { ...ada, database } }).inboxChanges.read('worker', eventId);
    const deciding = message.decide(decision(eventId), asSeen(readable(message.row)));
    await oneWaits();
    await end();
    expect(await deciding).toBe('done');
    expect(await effects()).toMatchObject([{ name: 'refund', status: 'IN_PROGRESS' }]);
  });
});

/** The operator's database, whose statements are changed. */
function rewritten(change: (text: string) => string): OpenPostgres['database'] {
  const { database } = ada;
  const changed = ({ query }: Sql): Sql => ({ query: (text, values) => query(change(text), values) });
  return { ...database, ...changed(database), in: (tx) => changed(database.in(tx)) };
}
