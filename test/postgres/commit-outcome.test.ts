import { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import { isMailroomError } from '../../lambdas/runtime/base/errors.ts';
import { DAY_MS } from '../../lambdas/runtime/base/units.ts';
import type { Inbox, UnclaimedEnd } from '../../lambdas/runtime/consume/inbox-port.ts';
import type { EventDraft } from '../../lambdas/runtime/events/event.ts';
import type { Message } from '../../lambdas/runtime/inbox/inbox.ts';
import { nodePostgres, type PgClient } from '../../lambdas/runtime/postgres/databases.ts';
import { careForTables } from '../../lambdas/runtime/postgres/postgres-care.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { mintEventId, systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { postgresInbox } from '../../lambdas/runtime/store/postgres/inbox.ts';
import type { Database } from '../../lambdas/runtime/store/postgres/sql.ts';
import { manualClock } from '../../testing/index.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { FUNCTION_MS, inTime, LEASE_MS, sent, shift, testOutbox } from './inbox-rig.ts';
import { type CrashingPool, crashingPool } from './support/crashing-pool.ts';
import { relayConfig } from './support/relay-config.ts';
import { PRODUCER, placed, type Rig, startRig } from './support/rig.ts';

let rig: Rig;
let pool: CrashingPool;

// Nothing but a COMMIT puts its log on the disk.
const QUIET = { wal_level: 'minimal', max_wal_senders: '0', wal_writer_delay: '10s', autovacuum: 'off' };

beforeAll(async () => {
  rig = await startRig('commit-outcome', QUIET);
  await rig.pool.query('CREATE TABLE note (text text)');
  pool = crashingPool(rig.pool);
});
beforeEach(async () => {
  await rig.clear();
  await rig.pool.query('TRUNCATE note, mailroom.commit, mailroom.inbox');
});
afterAll(() => rig.close());

/** Ends transactions of another connection, up to the one with this id. */
async function useUp(xid: string, end: 'COMMIT' | 'ROLLBACK'): Promise<void> {
  const other = new Client(rig.server.url);
  await other.connect();
  for (let used = ''; used !== xid; ) {
    await other.query('BEGIN');
    used = (await other.query('SELECT pg_current_xact_id()::text AS xid')).rows[0].xid;
    if (BigInt(used) > BigInt(xid)) throw new Error(`The crash did not lose the transaction ${xid}.`);
    // Without a row, a COMMIT puts nothing on the disk.
    await other.query("INSERT INTO note VALUES ('another')");
    await other.query(end);
  }
  await other.end();
}

async function crash(): Promise<void> {
  await rig.server.kill();
  await rig.server.recover();
}

/** A database whose question about a commit is changed. */
function asking(change: (text: string) => string): Database<PgClient> {
  const database = nodePostgres(pool);
  return {
    ...database,
    query: (text, values) => {
      if (!text.includes('pg_xact_status')) return database.query(text, values);
      const changed = change(text);
      return database.query(changed, values);
    },
  };
}

const asIs = (text: string) => text;

/** The question without its proof by a row. */
const byStatus = (text: string) =>
  text.replace(
    /\(EXISTS .*\)::text AS done/s,
    "(pg_xact_status($1::text::xid8) = 'committed' AND $2::text IS NOT NULL)::text AS done",
  );

function outboxOn(database: Database<PgClient>) {
  return createPostgresOutbox({ config: PRODUCER, database, telemetry: memoryTelemetry() });
}

/** The end of a commit, of which another row tells whether it happened. */
async function ended(events: readonly EventDraft[], change = asIs): Promise<string> {
  const committed = outboxOn(asking(change)).commit(async (tx) => {
    await tx.query("INSERT INTO note VALUES ('own')");
    return events;
  });
  const end = await committed.then(
    () => 'committed',
    (error: unknown) => (isMailroomError(error) ? error.code : 'the error of the COMMIT'),
  );
  const rows = await rig.rows("SELECT FROM note WHERE text = 'own'");
  return `${end}, ${rows.length} rows`;
}

describe.each([
  ['with an event', [placed(1)]],
  ['without events', []],
])('a commit %s that a crash of the server has lost', (_name, events) => {
  const crashThen = (act: (xid: string) => Promise<void>) =>
    pool.beforeNextCommit(async (xid) => {
      await crash();
      await act(xid);
    });

  test('is unknown when another transaction was committed under its id', async () => {
    crashThen((xid) => useUp(xid, 'COMMIT'));
    expect(await ended(events)).toBe('COMMIT_UNKNOWN, 0 rows');
  });

  test('would be called committed by the status of its id', async () => {
    crashThen((xid) => useUp(xid, 'COMMIT'));
    expect(await ended(events, byStatus)).toBe('committed, 0 rows');
  });

  test('was not committed when another transaction was rolled back under its id', async () => {
    crashThen((xid) => useUp(xid, 'ROLLBACK'));
    expect(await ended(events)).toBe('the error of the COMMIT, 0 rows');
  });

  test('was not committed when its id is not assigned yet', async () => {
    crashThen(async () => {});
    expect(await ended(events)).toBe('the error of the COMMIT, 0 rows');
  });
});

describe('a commit without events', () => {
  const commitRows = () => rig.rows('SELECT commit_id::text AS id FROM mailroom.commit');

  /** Its COMMIT is answered, and the answer is lost. */
  const unanswered: Database<PgClient>['transaction'] = async (run) => {
    await rig.database.transaction(run);
    throw new Error('connection lost');
  };

  test('whose answer is lost is known to be committed, by its own row', async () => {
    const database = { ...rig.database, transaction: unanswered };
    const events = await outboxOn(database).commit(async (tx) => {
      await tx.query("INSERT INTO note VALUES ('own')");
      return [];
    });
    expect(events).toEqual([]);
    expect(await commitRows()).toHaveLength(1);
  });

  test('that has written nothing leaves no row, and throws the error of its COMMIT', async () => {
    const run = async (tx: PgClient) => {
      await tx.query('SELECT FROM note');
      return [];
    };
    await outboxOn(rig.database).commit(run);
    const lost = outboxOn({ ...rig.database, transaction: unanswered }).commit(run);
    await expect(lost).rejects.toThrow('connection lost');
    expect(await commitRows()).toEqual([]);
  });

  test('has its row for a day', async () => {
    const [old, young] = [1.1, 0.9].map((days) => mintEventId(Date.now() - days * DAY_MS, 256));
    await rig.pool.query('INSERT INTO mailroom.commit VALUES ($1), ($2)', [old, young]);
    const parts = { config: relayConfig(), clock: systemClock, random: systemRandomBytes };
    await careForTables({ ...parts, database: rig.database, telemetry: memoryTelemetry() });
    expect(await commitRows()).toEqual([{ id: young }]);
  });
});

describe('a commit of a message that a crash of the server has lost', () => {
  const clock = { ...manualClock(), sleep: async () => {} };
  const event = {} as never;
  const settings = {
    consumer: 'worker',
    leaseMs: LEASE_MS,
    inboxRetentionDays: 35,
    random: systemRandomBytes,
  };
  const inboxOn = (database: Database<PgClient>) =>
    postgresInbox({ settings: { ...settings, clock }, database, outbox: testOutbox });
  const claimOf = async (inbox: Inbox, message: Message) => {
    const options = { alone: true, firstReceive: false, endsBy: clock.now() + FUNCTION_MS };
    const result = await inbox.claim(message, options);
    if (result.status !== 'claimed') throw new Error(`The claim was refused: ${result.status}`);
    return result.claim;
  };
  const note = (text: string) => async (tx: unknown) => {
    await (tx as PgClient).query('INSERT INTO note VALUES ($1)', [text]);
    return {};
  };
  const newMessage = (): Message => ({ eventId: mintEventId(clock.now(), 2), messageId: 'first' });
  /** The question without the fence. */
  const byTransaction = (text: string) => text.replace('AND fence = $4::text', 'AND $4::text IS NOT NULL');

  /** Uses up ids that a crash loses, so that another run can have those before the one of this run. */
  async function spareIds(): Promise<void> {
    for (let n = 0; n < 20; n += 1) await rig.pool.query('SELECT pg_current_xact_id()');
  }

  /** Another worker commits the same message, under the same transaction id. */
  async function repeated(xid: string, commit: (inbox: Inbox) => Promise<unknown>): Promise<void> {
    const other = crashingPool(rig.pool);
    let used = '';
    other.beforeNextCommit(async (its) => {
      used = its;
    });
    await useUp(String(BigInt(xid) - 1n), 'ROLLBACK');
    await commit(inboxOn(nodePostgres(other)));
    expect(used).toBe(xid);
  }

  async function outcome(change: (text: string) => string, run: (inbox: Inbox) => Promise<UnclaimedEnd>) {
    const end = await run(inboxOn(asking(change)));
    return { end, notes: (await rig.rows('SELECT text FROM note')).map(({ text }) => text) };
  }

  async function claimed(change: (text: string) => string) {
    const claim = await claimOf(inboxOn(rig.database), newMessage());
    await spareIds();
    pool.beforeNextCommit(async (xid) => {
      await crash();
      await shift(rig.database, FUNCTION_MS);
      const next = await claimOf(inboxOn(rig.database), claim.message);
      await repeated(xid, (inbox) => inbox.commit(next, note('other run'), event, sent));
    });
    return outcome(change, (inbox) => inbox.commit(claim, note('own run'), event, sent));
  }

  async function unclaimed(change: (text: string) => string) {
    const message = newMessage();
    await spareIds();
    pool.beforeNextCommit(async (xid) => {
      await crash();
      await repeated(xid, (inbox) => inbox.commitUnclaimed(message, 1, note('other run'), event, inTime));
    });
    return outcome(change, (inbox) => inbox.commitUnclaimed(message, 1, note('own run'), event, inTime));
  }

  test('is not taken for the commit of another run under the same transaction id', async () => {
    const end = { status: 'failed', wroteNothing: false };
    expect(await claimed(asIs)).toMatchObject({ end, notes: ['other run'] });
  });

  test('would be taken for it without the fence', async () => {
    expect(await claimed(byTransaction)).toMatchObject({
      end: { status: 'committed' },
      notes: ['other run'],
    });
  });

  test('is not taken for the commit of another run that claimed nothing either', async () => {
    expect(await unclaimed(asIs)).toMatchObject({ end: { status: 'failed' }, notes: ['other run'] });
  });

  test('would be taken for it without the fence of an unclaimed message', async () => {
    expect(await unclaimed(byTransaction)).toMatchObject({
      end: { status: 'committed' },
      notes: ['other run'],
    });
  });
});
