import type { PoolConnection } from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Inbox } from '../../lambdas/runtime/consume/inbox-port.ts';
import type { Claim, Message } from '../../lambdas/runtime/inbox/inbox.ts';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import { manualClock } from '../../testing/index.ts';
import { FUNCTION_MS, inTime, LEASE_MS, sent } from '../postgres/inbox-rig.ts';
import { inboxOn, PAYMENT, shift } from './inbox-rig.ts';
import { changedDatabase } from './support/changed-database.ts';
import { type Rig, startRig } from './support/rig.ts';

let rig: Rig;
const clock = manualClock(Date.now());
/** Its sleeps end at once. */
const hurried = { ...clock, sleep: async () => {} };
const EVENT = {} as never;

beforeAll(async () => {
  rig = await startRig('mysql-inbox-server');
  await rig.pool.query(PAYMENT);
});
afterAll(() => rig.close());
beforeEach(async () => {
  await rig.clear();
  await rig.pool.query('DELETE FROM mailroom.payment');
});

const message = (): Message => ({ eventId: mintEventId(clock.now(), 2), messageId: 'first' });
const options = () => ({ alone: true, firstReceive: false, endsBy: clock.now() + FUNCTION_MS });

async function claimed(inbox: Inbox, what: Message): Promise<Claim> {
  const result = await inbox.claim(what, options());
  if (result.status !== 'claimed') throw new Error(`The claim was refused: ${result.status}`);
  return result.claim;
}

const pay = (note: string) => async (tx: unknown) => {
  await (tx as PoolConnection).query('INSERT INTO mailroom.payment (event_id, note) VALUES (?, ?)', [
    'e',
    note,
  ]);
  return {};
};

const payments = async () => (await rig.rows('SELECT 1 FROM mailroom.payment')).length;
const lost = () =>
  Object.assign(new Error('Connection lost: The server closed the connection.'), { fatal: true });

describe('a commit', () => {
  const DONE = { status: 'committed', events: 0 };

  test('whose answer is lost after it was written is known to be written', async () => {
    const database = changedDatabase(rig.pool, async (query, send) => {
      const answer = await send(query);
      if (query.sql === 'COMMIT') throw lost();
      return answer;
    });
    const held = await claimed(inboxOn(rig.database, clock), message());
    const inbox = inboxOn(database, hurried);
    expect(await inbox.commit(held, pay('once'), EVENT, sent)).toEqual(DONE);
    expect(await inbox.commitUnclaimed(message(), 1, pay('twice'), EVENT, inTime)).toEqual(DONE);
    expect(await payments()).toBe(2);
  });

  test('whose connection ends before it is written is known not to be written, and counts no attempt', async () => {
    const database = changedDatabase(rig.pool, async (query, send, connection) => {
      if (query.sql === 'COMMIT') await rig.pool.query('KILL ?', [(connection as PoolConnection).threadId]);
      return send(query);
    });
    const inbox = inboxOn(database, hurried);
    const claim = await claimed(inboxOn(rig.database, clock), message());
    const sending = vi.fn();
    const end = await inbox.commit(claim, pay('no'), EVENT, sending);
    expect(sending).toHaveBeenCalledOnce();
    expect(end).toMatchObject({ status: 'failed', wroteNothing: true, isOutage: true });
    const unclaimed = await inbox.commitUnclaimed(message(), 1, pay('no'), EVENT, inTime);
    expect(unclaimed).toMatchObject({ status: 'failed', wroteNothing: true, isOutage: true });
    expect(await payments()).toBe(0);
    expect(await inboxOn(rig.database).commit(claim, pay('yes'), EVENT, sent)).toEqual(DONE);
    expect(await payments()).toBe(1);
  });

  test('that still runs on the server is unknown', async () => {
    let running: PoolConnection | undefined;
    const database = changedDatabase(rig.pool, async (query, send, connection) => {
      if (query.sql === 'ROLLBACK' && connection === running) throw lost(); // the connection is gone, and its transaction is not
      if (query.sql !== 'COMMIT') return send(query);
      running = connection as PoolConnection;
      throw lost();
    });
    const inbox = inboxOn(database, hurried);
    const what = message();
    const held = await claimed(inboxOn(rig.database), what);
    const end = await inbox.commit(
      held,
      async (tx) => {
        (tx as PoolConnection).destroy = () => {};
        return pay('later')(tx);
      },
      EVENT,
      sent,
    );
    expect(end).toMatchObject({ status: 'failed', wroteNothing: false });
    await running?.query('COMMIT');
    running?.release();
    expect(await payments()).toBe(1);
    expect(await inbox.read(what.eventId)).toMatchObject({ status: 'PROCESSED' });
  });

  test('is unknown to a server that cannot write and has no row of it: it may be a replica that lags behind', async () => {
    const held = await claimed(inboxOn(rig.database), message());
    const database = changedDatabase(rig.pool, async (query, send) => {
      if (query.sql !== 'COMMIT') return send(query);
      await send({ ...query, sql: 'ROLLBACK' });
      await rig.pool.query('SET GLOBAL read_only = 1');
      throw lost();
    });
    try {
      const end = await inboxOn(database, hurried).commit(held, pay('no'), EVENT, sent);
      expect(end).toMatchObject({ status: 'failed', wroteNothing: false, isOutage: true });
    } finally {
      await rig.pool.query('SET GLOBAL read_only = 0');
    }
  });

  test('that its row refuses is an outage if the row cannot be read then', async () => {
    const away = changedDatabase(rig.pool, async (query, send) => {
      if (query.sql.startsWith('SELECT') && query.sql.includes('LEFT JOIN')) throw lost();
      return send(query);
    });
    const claim = await claimed(inboxOn(rig.database), message());
    const end = await inboxOn(away).commit({ ...claim, fence: 'another' }, pay('no'), EVENT, sent);
    expect(end).toMatchObject({ status: 'failed', wroteNothing: true, isOutage: true });
    expect(await payments()).toBe(0);
  });

  test('is rolled back, and its connection released, also if the error of its handler cannot be read', async () => {
    const inbox = inboxOn(rig.database);
    const claim = await claimed(inbox, message());
    const hostile = {
      get errno(): number {
        throw new Error('no errno');
      },
      get fatal(): boolean {
        throw new Error('not fatal');
      },
    };
    const end = await inbox.commit(claim, () => Promise.reject(hostile), EVENT, sent);
    expect(end).toMatchObject({ status: 'failed', wroteNothing: true, isOutage: false });
    expect(await inbox.commit(claim, pay('once'), EVENT, sent)).toEqual(DONE);
  });

  test('in progress holds its message: neither a takeover nor a renewal waits for its end', async () => {
    const inbox = inboxOn(rig.database, clock);
    const claim = await claimed(inbox, message());
    await shift(rig.rows, LEASE_MS + 1_000);
    const impatient = rig.poolOf();
    impatient.on('connection', (connection) => {
      connection.query('SET SESSION innodb_lock_wait_timeout = 1');
    });
    let meanwhile: unknown;
    const end = await inbox.commit(
      claim,
      async (tx) => {
        await inbox.renew(claim);
        const other = inboxOn(mysql2(impatient), clock);
        meanwhile = (await other.claim(claim.message, options())).status;
        return pay('once')(tx);
      },
      EVENT,
      sent,
    );
    await impatient.end();
    expect(end).toEqual(DONE);
    expect(meanwhile).toBe('leased');
    expect(await payments()).toBe(1);
  });

  test('that meets a deadlock before its handler runs is repeated, and the handler runs once', async () => {
    let failures = 0;
    const database = changedDatabase(rig.pool, async (query, send) => {
      if (query.sql.startsWith('INSERT INTO mailroom.inbox') && failures < 2) {
        failures += 1;
        throw Object.assign(new Error('Deadlock found when trying to get lock'), { errno: 1213 });
      }
      return send(query);
    });
    const work = vi.fn(pay('once'));
    const end = await inboxOn(database).commitUnclaimed(message(), 1, work, EVENT, inTime);
    expect(end).toEqual(DONE);
    expect([failures, work.mock.calls.length, await payments()]).toEqual([2, 1, 1]);
  });
});

describe('a claim', () => {
  test('has a whole lease after a takeover, however long the statement before it waited', async () => {
    const what = message();
    await claimed(inboxOn(rig.database, clock), what);
    await shift(rig.rows, LEASE_MS + 1_000);
    const slow = changedDatabase(rig.pool, async (query, send) => {
      const answer = await send(query);
      if (query.sql.startsWith('INSERT INTO mailroom.inbox ')) await clock.advance(2 * LEASE_MS);
      return answer;
    });
    const { leaseUntil, takenOver } = await claimed(inboxOn(slow, clock), what);
    expect({ leaseUntil, takenOver }).toEqual({ leaseUntil: clock.now() + LEASE_MS, takenOver: true });
    expect(
      await rig.rows('SELECT IF(lease_until > UTC_TIMESTAMP(6), 1, 0) AS held FROM mailroom.inbox'),
    ).toEqual([{ held: 1 }]);
  });

  test('whose key would not fit is refused with an error, and does not become another message', async () => {
    const what = { ...message(), eventId: 'x'.repeat(600) };
    await expect(inboxOn(rig.database).claim(what, options())).rejects.toMatchObject({ errno: 1406 });
    expect(await rig.rows('SELECT 1 FROM mailroom.inbox')).toEqual([]);
  });

  test('of a row by its primary key reads one row', async () => {
    await claimed(inboxOn(rig.database), message());
    const plans: string[] = [];
    const explained = changedDatabase(rig.pool, async (query, send) => {
      if (/^(SELECT|UPDATE)/.test(query.sql) && query.sql.includes('mailroom.inbox i')) {
        const [rows] = await rig.pool.query(`EXPLAIN ${query.sql}`, query.values);
        for (const { table, type } of rows as Record<string, string>[])
          if (table === 'i') plans.push(String(type));
      }
      return send(query);
    });
    const inbox = inboxOn(explained);
    const held = await claimed(inbox, message());
    await inbox.renew(held);
    await inbox.startEffect({ claim: held, name: 'charge', run: 1 });
    expect(await inbox.complete(held, undefined)).toBeUndefined();
    expect(plans.length).toBeGreaterThan(5);
    expect(plans.filter((type) => type !== 'const' && type !== 'range')).toEqual([]);
  });
});
