import { Pool } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Inbox } from '../../lambdas/runtime/consume/inbox-port.ts';
import type { Claim, Message } from '../../lambdas/runtime/inbox/inbox.ts';
import { nodePostgres, type PgClient, type PgPool } from '../../lambdas/runtime/postgres/databases.ts';
import { mintEventId, systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { postgresInbox } from '../../lambdas/runtime/store/postgres/inbox.ts';
import type { Database } from '../../lambdas/runtime/store/postgres/sql.ts';
import { manualClock } from '../../testing/index.ts';
import { FUNCTION_MS, inTime, LEASE_MS, migratedPostgres, sent, shift, testOutbox } from './inbox-rig.ts';

let postgres: Awaited<ReturnType<typeof migratedPostgres>>;
/** As the login role of a consumer has it. */
let impatient: Pool;
const clock = manualClock();
const EVENT = {} as never;

beforeAll(async () => {
  postgres = await migratedPostgres('inbox-server');
  impatient = new Pool({ connectionString: postgres.server.url, options: '-c lock_timeout=50ms' });
});
afterAll(async () => {
  await impatient.end();
  await postgres.close();
});
beforeEach(() => postgres.database.query('TRUNCATE mailroom.inbox, mailroom.effect, payment'));

const message = (): Message => ({ eventId: mintEventId(clock.now(), 2), messageId: 'first' });

/** An inbox whose sleeps end at once, on a database whose statements a test may change. */
function inboxOn(database: Database<PgClient>): Inbox {
  const settings = {
    consumer: 'worker',
    leaseMs: LEASE_MS,
    inboxRetentionDays: 35,
    random: systemRandomBytes,
  };
  const hurried = { ...clock, sleep: async () => {} };
  return postgresInbox({ settings: { ...settings, clock: hurried }, database, outbox: testOutbox });
}

async function claimed(inbox: Inbox, what: Message): Promise<Claim> {
  const options = { alone: true, firstReceive: false, endsBy: clock.now() + FUNCTION_MS };
  const result = await inbox.claim(what, options);
  if (result.status !== 'claimed') throw new Error(`The claim was refused: ${result.status}`);
  return result.claim;
}

const pay = (note: string) => async (tx: unknown) => {
  await (tx as PgClient).query('INSERT INTO payment (event_id, note) VALUES ($1, $2)', ['e', note]);
  return {};
};

const payments = async () => (await postgres.database.query('SELECT 1 FROM payment')).rows.length;

/** Waits until a statement waits for a lock. */
async function blocked(): Promise<void> {
  const text = 'SELECT 1 FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0';
  while ((await postgres.pool.query(text)).rowCount === 0);
}

/** A pool that changes what its clients send. */
function changed(
  query: (client: PgClient, text: string, values?: unknown[]) => ReturnType<PgClient['query']>,
) {
  const pool: PgPool = {
    query: (text, values) => query(postgres.pool as never, text, values),
    connect: async () => {
      const client = await postgres.pool.connect();
      return {
        query: (text, values) => query(client, text, values),
        release: (error) => client.release(error),
        on: (event, listener) => client.on(event, listener),
        off: (event, listener) => client.off(event, listener),
      };
    },
  };
  return nodePostgres(pool);
}

describe('the start of an effect, of which another session holds the entry', () => {
  /** The effect starts, waits for a third session, and another worker tries to take the message over meanwhile. */
  async function race(rewrite: (text: string) => string) {
    const { pool, database } = postgres;
    const worker = inboxOn(changed((client, text, values) => client.query(rewrite(text), values)));
    const what = message();
    const claim = await claimed(worker, what);
    await shift(database, LEASE_MS + 1_000);
    const third = await pool.connect();
    await third.query('BEGIN');
    await third.query(
      `INSERT INTO mailroom.effect (consumer, event_id, name, status, fence, run, started_at, ends_by)
        VALUES ('worker', $1, 'charge', 'IN_PROGRESS', 'none', 1, now(), now())`,
      [what.eventId],
    );
    const started = worker.startEffect({ claim, name: 'charge', run: 1 });
    await blocked();
    const options = { alone: true, firstReceive: false, endsBy: clock.now() + FUNCTION_MS };
    const taken = await inboxOn(nodePostgres(impatient)).claim(what, options);
    await third.query('ROLLBACK');
    third.release();
    return { taken: taken.status, started: await started.then(() => 'started') };
  }

  test('holds the message: it is not taken over until the effect has started', async () => {
    expect(await race((text) => text)).toEqual({ taken: 'leased', started: 'started' });
  });

  test('would start under a lost fence without the lock on the message', async () => {
    const rewrite = (text: string) =>
      text.startsWith('WITH held') ? text.replace('FOR NO KEY UPDATE', '') : text;
    expect(await race(rewrite)).toEqual({ taken: 'claimed', started: 'started' });
  });
});

test('a takeover has a whole lease, however long the statement before it waited', async () => {
  const { database } = postgres;
  const what = message();
  await claimed(inboxOn(database), what);
  await shift(database, LEASE_MS + 1_000);
  const slow = changed(async (client, text, values) => {
    const answer = await client.query(text, values);
    if (text.startsWith('INSERT INTO mailroom.inbox ')) await clock.advance(2 * LEASE_MS);
    return answer;
  });
  const { leaseUntil, takenOver } = await claimed(inboxOn(slow), what);
  expect({ leaseUntil, takenOver }).toEqual({ leaseUntil: clock.now() + LEASE_MS, takenOver: true });
  const { rows } = await postgres.pool.query(
    'SELECT lease_until > clock_timestamp() AS held FROM mailroom.inbox',
  );
  expect(rows).toEqual([{ held: true }]);
});

test('claims on a pool in REPEATABLE READ are repeated after 40001, and one is granted', async () => {
  const options = '-c default_transaction_isolation=repeatable\\ read';
  const pool = new Pool({ connectionString: postgres.server.url, max: 10, options });
  const inbox = inboxOn(nodePostgres(pool));
  for (let round = 0; round < 20; round += 1) {
    const what = message();
    await inbox.fail(await claimed(inbox, what), new Error('no'), clock.now(), {});
    const claims = await Promise.all(
      [1, 2, 3, 4].map(() =>
        inbox.claim(what, { alone: true, firstReceive: false, endsBy: clock.now() + FUNCTION_MS }),
      ),
    );
    expect(claims.filter(({ status }) => status === 'claimed')).toHaveLength(1);
  }
  await pool.end();
});

describe('a commit', () => {
  const DONE = { status: 'committed', events: 0 };

  test('whose answer is lost after it was written is known to be written', async () => {
    const lost = changed(async (client, text, values) => {
      const result = await client.query(text, values);
      if (text === 'COMMIT') throw new Error('Connection terminated unexpectedly');
      return result;
    });
    const inbox = inboxOn(lost);
    const held = await claimed(inbox, message());
    expect(await inbox.commit(held, pay('once'), EVENT, sent)).toEqual(DONE);
    const unclaimed = await inbox.commitUnclaimed(message(), 1, pay('twice'), EVENT, inTime);
    expect(unclaimed).toEqual(DONE);
    expect(await payments()).toBe(2);
  });

  test('whose connection ends before it is written is known not to be written, and counts no attempt', async () => {
    const lost = changed(async (client, text, values) => {
      if (text !== 'COMMIT') return client.query(text, values);
      const { rows } = await client.query('SELECT pg_backend_pid() AS pid');
      await postgres.pool.query('SELECT pg_terminate_backend($1::int, 60000)', [rows[0]?.pid]);
      return client.query(text, values);
    });
    const inbox = inboxOn(lost);
    const claim = await claimed(inbox, message());
    const sending = vi.fn();
    const end = await inbox.commit(claim, pay('no'), EVENT, sending);
    expect(sending).toHaveBeenCalledOnce();
    expect(end).toMatchObject({ status: 'failed', wroteNothing: true, isOutage: true });
    expect(await payments()).toBe(0);
    await inboxOn(postgres.database).commit(claim, pay('yes'), EVENT, sent);
    expect(await payments()).toBe(1);
  });

  test('that its row refuses is an outage if the row cannot be read then', async () => {
    const away = changed(async (client, text, values) => {
      if (text.startsWith('SELECT') && text.includes('FROM mailroom.inbox'))
        throw new Error('connect ECONNREFUSED');
      return client.query(text, values);
    });
    const claim = await claimed(inboxOn(postgres.database), message());
    const lost = { ...claim, fence: 'another' };
    const end = await inboxOn(away).commit(lost, pay('no'), EVENT, sent);
    expect(end).toMatchObject({ status: 'failed', wroteNothing: true, isOutage: true });
    expect(await payments()).toBe(0);
  });

  test('is rolled back, and its connection released, also if the error of its handler cannot be read', async () => {
    const inbox = inboxOn(postgres.database);
    const claim = await claimed(inbox, message());
    const hostile = {
      get code(): string {
        throw new Error('no code');
      },
    };
    const end = await inbox.commit(claim, () => Promise.reject(hostile), EVENT, sent);
    expect(end).toMatchObject({ status: 'failed', wroteNothing: true, isOutage: false });
    expect(await inbox.commit(claim, pay('once'), EVENT, sent)).toEqual(DONE);
  });

  test('after a statement whose error the handler caught is refused: PostgreSQL would roll it back without an error', async () => {
    const inbox = inboxOn(postgres.database);
    const claim = await claimed(inbox, message());
    const careless = async (tx: unknown) => {
      await pay('no')(tx);
      await (tx as PgClient).query('SELECT 1 / 0').catch(() => {});
      return {};
    };
    const end = await inbox.commit(claim, careless, EVENT, sent);
    expect(end).toMatchObject({ status: 'failed', error: { code: '25P02' }, wroteNothing: true });
    expect(await inbox.read(claim.message.eventId)).toMatchObject({ status: 'PROCESSING' });
  });

  test('in progress holds its message: a takeover and a renewal do not wait for it', async () => {
    const inbox = inboxOn(postgres.database);
    const claim = await claimed(inbox, message());
    await shift(postgres.database, LEASE_MS + 1_000);
    let meanwhile: unknown;
    const end = await inbox.commit(
      claim,
      async (tx) => {
        await inbox.renew(claim);
        const options = { alone: true, firstReceive: false, endsBy: clock.now() + FUNCTION_MS };
        const other = inboxOn(nodePostgres(impatient));
        meanwhile = (await other.claim(claim.message, options)).status;
        return pay('once')(tx);
      },
      EVENT,
      sent,
    );
    expect(end).toEqual(DONE);
    expect(meanwhile).toBe('leased');
    expect(await payments()).toBe(1);
  });
});
