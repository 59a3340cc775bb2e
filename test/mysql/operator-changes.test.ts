import type { PoolConnection } from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { mysqlOutboxChanges } from '../../cli/deployment/mysql-outbox-changes.ts';
import { runMailroom } from '../../cli/program.ts';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import { asSeen, NOT_FINAL } from '../../lambdas/runtime/inbox/inbox-conditions.ts';
import { allowTooOld } from '../../lambdas/runtime/operations/message-operations.ts';
import { systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import type { InboxRow } from '../../lambdas/runtime/store/inbox-row.ts';
import { lastKey } from '../../lambdas/runtime/store/keys.ts';
import { KEY, NOW, textParameter } from '../../lambdas/runtime/store/mysql/expressions.ts';
import { mysqlInboxChanges } from '../../lambdas/runtime/store/mysql/inbox-operator.ts';
import type { Database } from '../../lambdas/runtime/store/sql/database.ts';
import { capturedIo } from '../support/captured-io.ts';
import { jsonOf, operatedMailroom } from '../support/operated-mailroom.ts';
import { type Change, changedDatabase } from './support/changed-database.ts';
import {
  deadEvent,
  logOf,
  message,
  type Operated,
  pendingEvent,
  publishedEvent,
  startOperated,
  statesOf,
  storedEvent,
} from './support/operated.ts';

let operated: Operated;
let ada: ReturnType<Operated['poolOf']>;

beforeAll(async () => {
  operated = await startOperated('mysql-operator');
  ada = operated.poolOf({ user: 'ada' });
  ada.on('connection', (connection) => {
    connection.query('SET SESSION innodb_lock_wait_timeout = 1');
  });
});
afterAll(async () => {
  await ada.end();
  await operated.close();
});
beforeEach(() => operated.clear());

const note = { by: 'arn:ada', reason: 'the bus is back' };
const FENCE = 'token-of-the-decision';
const depsOf = (database: Database<PoolConnection>) => ({
  database: database as Database<unknown>,
  whole: database,
  clock: { ...systemClock, sleep: async () => {} },
  random: systemRandomBytes,
});
const through = (change: Change) => depsOf(changedDatabase(ada, change));
const plain: Change = (query, send) => send(query);
const events = (change: Change = plain) => mysqlOutboxChanges(through(change));
const inboxes = (change: Change = plain) => mysqlInboxChanges(through(change));
const lost = () => Object.assign(new Error('Connection lost'), { fatal: true });
const rowOf = async (eventId: string) =>
  (await operated.rows(`SELECT * FROM mailroom.inbox WHERE event_id = ${KEY}`, textParameter(eventId)))[0];
const decision = (eventId: string, status: 'PROCESSED' | 'DISCARDED' = 'DISCARDED') => ({
  ...{ eventId, status, fence: FENCE, by: 'arn:ada', reason: 'charged by phone' },
});
const failed = async (set = "fence = 'f', attempts = 1") => {
  const eventId = await storedEvent(operated, Date.now() - 60_000);
  await message(operated, eventId, 'FAILED', `last_error = 'no bank', fingerprint = 'x', ${set}`);
  return eventId;
};

test('requeues and discards DEAD events once, and says who did it', async () => {
  const [one, other] = [await deadEvent(operated), await deadEvent(operated)];
  expect(await events().requeue(one, note)).toBe(true);
  expect(await events().requeue(one, note)).toBe(false);
  expect(await events().discard(other, note)).toBe(true);
  expect(await events().discard('01a1fba6-4458-7a41-9c37-3f5d2b8e1103', note)).toBeUndefined();
  expect(await statesOf(operated, one)).toEqual(['pending']);
  expect(await statesOf(operated, other)).toEqual(['discarded']);
  const log = { operator: 'ada@%', reason: note.reason };
  expect(await logOf(operated)).toEqual(
    [
      { ...log, command: 'mysql requeue', subject: one },
      { ...log, command: 'mysql discard', subject: other },
    ].toSorted((a, b) => (a.subject < b.subject ? -1 : 1)),
  );
});

test('an event is published again once for one reading, and not while it waits for an operator', async () => {
  const at = Date.now() - 60_000;
  const eventId = await publishedEvent(operated, at);
  expect(await events().publishAgain(eventId, at, note)).toBe('queued');
  expect(await events().publishAgain(eventId, at, note)).toBe('queued');
  expect(await statesOf(operated, eventId)).toEqual(['pending', 'published']);
  expect(await logOf(operated)).toHaveLength(1);
  expect(await events().markResent(eventId, note)).toBe(true);
  expect(await events().markResent(await pendingEvent(operated), note)).toBe(false);
});

test('the command requeues all DEAD events without AWS', async () => {
  const ids = [await deadEvent(operated), await deadEvent(operated)];
  const { io, written } = capturedIo();
  const argv = ['mysql', 'requeue', '--reason', note.reason, '--database', operated.urlOf('ada'), '--json'];
  expect(await runMailroom(argv, io)).toBe(0);
  expect(JSON.parse(written.out)).toMatchObject({ requeued: ids.toSorted(), notDead: [] });
});

test('resolves, discards and lists messages by the commands', async () => {
  await operated.rows(`INSERT INTO mailroom.inbox_retention VALUES ('worker', ${NOW}, 35)`);
  const made = await operatedMailroom(operated.open, []);
  const eventId = await failed();
  const reason = ['--reason', 'charged by phone', '--apply'];
  expect(await jsonOf(made, 'messages', 'resolve', 'worker', eventId, ...reason)).toMatchObject({
    exitCode: 0,
  });
  expect(await rowOf(eventId)).toMatchObject({ status: 'PROCESSED', resolved_reason: 'charged by phone' });
  const { operations } = await jsonOf(made, 'operations');
  expect(JSON.stringify(operations)).toContain('mysql resolve');
  const dead = await deadEvent(operated);
  await jsonOf(made, 'events', 'list');
  expect(await made.outboxChanges.requeue(dead, note)).toBe(true);
});

test('a message without a row is ended, and stays ended', async () => {
  const eventId = await storedEvent(operated, Date.now() - 60_000);
  const read = await inboxes().read('worker', eventId);
  expect(read.row).toBeUndefined();
  expect(await read.decide(decision(eventId), { absent: true })).toBe('done');
  expect(await read.decide({ ...decision(eventId), fence: 'other' }, { absent: true })).toBe('changed');
  expect(await rowOf(eventId)).toMatchObject({ status: 'DISCARDED', discarded_by: 'arn:ada' });
  expect(await logOf(operated)).toMatchObject([{ command: 'mysql discard', subject: `worker ${eventId}` }]);
});

test('a message that is too old is allowed to run, once', async () => {
  const eventId = await storedEvent(operated, Date.now() - 60_000);
  await message(operated, eventId, 'REJECTED', `reason = 'EVENT_TOO_OLD', rejected_at = ${NOW}, fence = 'f'`);
  expect(await inboxes().allow('worker', { eventId, ...note })).toBe(true);
  expect(await rowOf(eventId)).toMatchObject({ run_anyway: 1, allowed_reason: note.reason });
  expect(await inboxes().allow('worker', { eventId: await failed(), ...note })).toBe(false);
});

test('an account without rights changes nothing', async () => {
  await operated.rows("CREATE USER 'reader'@'%'");
  await operated.rows("GRANT SELECT ON mailroom.* TO 'reader'@'%'");
  const eventId = await deadEvent(operated);
  const { io, written } = capturedIo();
  const argv = ['mysql', 'requeue', eventId, '--reason', note.reason, '--database', operated.urlOf('reader')];
  expect(await runMailroom(argv, io)).not.toBe(0);
  expect(written.err).toContain('ACCESS_DENIED');
  expect(await statesOf(operated, eventId)).toEqual(['dead']);
});

describe('a lost answer to COMMIT', () => {
  /** Loses the answer to the first COMMIT. @param sends - it reached the server */
  const losing = (sends: boolean): Change => {
    let isLost = false;
    return async (query, send) => {
      if (query.sql !== 'COMMIT' || isLost) return send(query);
      isLost = true;
      if (sends) await send(query);
      throw lost();
    };
  };

  test.each([true, false])(
    'of an event that was changed (reached the server: %s) is found out',
    async (sends) => {
      const eventId = await deadEvent(operated);
      expect(await events(losing(sends)).requeue(eventId, note)).toBe(true);
      expect(await statesOf(operated, eventId)).toEqual(['pending']);
      expect(await logOf(operated)).toHaveLength(1);
    },
  );

  test('of a decision is found out', async () => {
    const eventId = await failed();
    const read = await inboxes(losing(true)).read('worker', eventId);
    expect(await read.decide(decision(eventId), asSeen(read.row as InboxRow))).toBe('done');
    expect(await logOf(operated)).toHaveLength(1);
  });

  test.each([true, false])(
    'of an order that was raised (reached the server: %s) is found out',
    async (sends) => {
      const key = lastKey({
        consumer: 'worker',
        group: '',
        source: 's',
        aggregateType: 'T',
        aggregateId: '1',
      }).PK;
      const raise = { key, sequence: 3, seen: await inboxes().lastSequence(key) };
      const raised = inboxes(losing(sends)).raise(raise, note);
      if (sends) expect(await raised).toBe(true);
      else await expect(raised).rejects.toMatchObject({ fatal: true });
      expect((await inboxes().lastSequence(key)).last).toBe(sends ? 3 : 0);
      expect(await logOf(operated)).toHaveLength(sends ? 1 : 0);
    },
  );

  test('that stays unknown is COMMIT_UNKNOWN', async () => {
    const eventId = await deadEvent(operated);
    let isGone = false;
    let now = 0;
    const gone: Change = async (query, send) => {
      isGone ||= query.sql === 'COMMIT';
      if (isGone) throw lost();
      return send(query);
    };
    const clock = { ...systemClock, now: () => (now += 10_000), sleep: async () => {} };
    const changes = mysqlOutboxChanges({ ...through(gone), clock });
    await expect(changes.requeue(eventId, note)).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN' });
  });
});

test('a message whose row another transaction holds is not allowed to run, for that reason', async () => {
  const eventId = await storedEvent(operated, Date.now() - 60_000);
  const set = "fence = 'f', attempts = 1, rejected_at = UTC_TIMESTAMP(6), rejected_ids = ',\"m1\"'";
  const old = "reason = 'EVENT_TOO_OLD', last_error = 'old', fingerprint = 'x'";
  await message(operated, eventId, 'REJECTED', `${set}, ${old}`);
  const deps = { ...(await operatedMailroom(operated.open)), inboxChanges: inboxes() };
  const allow = () => allowTooOld(deps, { consumer: 'worker', eventId, ...note });
  const holder = await operated.pool.getConnection();
  await holder.query('START TRANSACTION');
  await holder.query('SELECT 1 FROM mailroom.inbox FOR UPDATE');
  await expect(allow()).rejects.toMatchObject({ code: 'MESSAGE_LEASED' });
  await holder.query('ROLLBACK');
  holder.release();
  await allow();
  expect(await rowOf(eventId)).toMatchObject({ run_anyway: 1 });
});

/** A rule, its clause with its replacement without it, and a situation. @returns true if the rule is broken in it */
interface Hole {
  readonly rule: string;
  readonly changes: readonly (readonly [clause: string, replacement: string])[];
  readonly isBroken: (change: (more?: Change) => Change) => Promise<boolean>;
}

/** Runs once, before the first statement that contains a text. */
const meanwhile = (text: string, run: () => Promise<unknown>): Change => {
  let isDone = false;
  return async (query, send) => {
    if (query.sql.includes(text) && !isDone) {
      isDone = true;
      await run();
    }
    return send(query);
  };
};

const HOLES: readonly Hole[] = [
  {
    rule: 'an event that was sent since the plan is not sent again',
    changes: [['COALESCE(p.resent_at, p.published_at) <=', "TIMESTAMP('2000-01-01') <="]],
    isBroken: async (change) => {
      const at = Date.now() - 60_000;
      const eventId = await publishedEvent(operated, at);
      await events().markResent(eventId, note);
      await events(change()).publishAgain(eventId, at, note);
      return (await statesOf(operated, eventId)).includes('pending');
    },
  },
  {
    rule: 'a DEAD event is not published again beside its requeue',
    changes: [['AND NOT EXISTS (SELECT 1 FROM mailroom.dead d WHERE d.event_id = p.event_id)', '']],
    isBroken: async (change) => {
      const eventId = await deadEvent(operated);
      await operated.rows('INSERT INTO mailroom.published SELECT event_id, dead_at, NULL FROM mailroom.dead');
      await events(change()).publishAgain(eventId, Date.now(), note);
      return (await statesOf(operated, eventId)).includes('pending');
    },
  },
  {
    rule: 'a discarded event is not published again',
    changes: [['AND NOT EXISTS (SELECT 1 FROM mailroom.discarded x WHERE x.event_id = p.event_id)', '']],
    isBroken: async (change) => {
      const eventId = await publishedEvent(operated);
      await operated.rows(
        "INSERT INTO mailroom.discarded SELECT event_id, published_at, 'ada', 'no' FROM mailroom.published",
      );
      await events(change()).publishAgain(eventId, Date.now(), note);
      return (await statesOf(operated, eventId)).includes('pending');
    },
  },
  {
    rule: 'of two operators, one requeues a DEAD event',
    changes: [
      [
        'mailroom.dead p WHERE p.event_id = UNHEX(?) FOR UPDATE',
        'mailroom.dead p WHERE p.event_id = UNHEX(?)',
      ],
    ],
    isBroken: async (change) => {
      const eventId = await deadEvent(operated);
      const second = meanwhile('INTO mailroom.pending', () =>
        events()
          .requeue(eventId, note)
          .catch(() => false),
      );
      await events(change(second))
        .requeue(eventId, note)
        .catch(() => false);
      return (await logOf(operated)).length > 1;
    },
  },
  {
    rule: 'a message that is final is not decided by force either',
    changes: [
      ["i.status <> 'PROCESSED' AND", ''],
      ["i.status <> 'DISCARDED' AND", ''],
    ],
    isBroken: async (change) => {
      const eventId = await failed();
      const read = await inboxes(change()).read('worker', eventId);
      await operated.rows("UPDATE mailroom.inbox SET status = 'PROCESSED'");
      return (await read.decide(decision(eventId), NOT_FINAL)) === 'done';
    },
  },
];

describe.each(HOLES)('$rule', ({ changes, isBroken }) => {
  function makes(isHoled: boolean) {
    const found = new Set<string>();
    const change =
      (more: Change = plain): Change =>
      (query, send, connection) => {
        let { sql } = query;
        for (const [clause, replacement] of isHoled ? changes : []) {
          if (sql.includes(clause)) found.add(clause);
          sql = sql.replaceAll(clause, replacement);
        }
        return more({ ...query, sql }, send, connection);
      };
    return { change, found };
  }

  test('with its clause', async () => {
    expect(await isBroken(makes(false).change)).toBe(false);
  });

  test('not without its clause', async () => {
    const { change, found } = makes(true);
    expect(await isBroken(change)).toBe(true);
    expect(found.size).toBe(changes.length);
  });
});
