import { expect, test } from 'vitest';
import { systemRandomBytes } from '../../../../lambdas/runtime/store/event-id.ts';
import { outcomeOf, wasCommitted } from '../../../../lambdas/runtime/store/postgres/commit-outcome.ts';
import type { Sql } from '../../../../lambdas/runtime/store/postgres/sql.ts';

/** The state of a server, as far as a question about transaction 7 can learn it. */
interface Server {
  /** Of the id 7. `future`: it is not assigned yet. */
  readonly status: 'in progress' | 'committed' | 'aborted' | 'future';
  /** The transaction in question was committed, so its row exists. */
  readonly row: boolean;
  readonly standby: boolean;
  /** It does not answer. */
  readonly down?: boolean;
}

const RUNNING: Server = { status: 'in progress', row: false, standby: false };
const COMMITTED: Server = { status: 'committed', row: true, standby: false };
const ROLLED_BACK: Server = { status: 'aborted', row: false, standby: false };
const LOST: Server = { status: 'future', row: false, standby: false };

/** Changes of a server between two questions, or during one. */
function nextOf(server: Server): Server[] {
  const { status, row } = server;
  const reuses = (['in progress', 'committed', 'aborted'] as const).map((next) => ({
    ...LOST,
    status: next,
  }));
  if (status === 'in progress' && server === RUNNING) return [server, COMMITTED, ROLLED_BACK, LOST];
  if (status === 'future') return [server, ...reuses];
  if (status === 'in progress') return [server, ...reuses];
  return row ? [server, { ...server, row: false }] : [server]; // a committed row may be deleted much later
}

/** All histories of some length. */
function histories(length: number): Server[][] {
  let all: Server[][] = [[RUNNING]];
  for (let n = 1; n < length; n += 1)
    all = all.flatMap((history) => nextOf(history.at(-1) ?? RUNNING).map((next) => [...history, next]));
  return all;
}

/** Answers as PostgreSQL does: the snapshot is taken first, then the status is read. */
function answering(snapshot: Server, now: Server, text: string): Record<string, string | null> {
  if (now.down === true) throw new Error('connection refused');
  const isAsked = !(text.includes('NOT pg_is_in_recovery()') && now.standby);
  if (isAsked && now.status === 'future') throw Object.assign(new Error('in the future'), { code: '22023' });
  return { status: isAsked ? now.status : null, done: String(snapshot.row) };
}

const SENT = { xid: '7', proof: 'EXISTS (SELECT)', values: ['own'] };

async function ask(views: readonly (readonly [Server, Server])[]) {
  let asked = 0;
  const database: Sql = {
    query: async (text) => {
      const [snapshot, now] = views[Math.min(asked, views.length - 1)] ?? [RUNNING, RUNNING];
      asked += 1;
      return { rows: [answering(snapshot, now, text)] };
    },
  };
  const clock = { now: () => 0, sleep: async () => {} };
  const outcome = await outcomeOf({ database, clock, random: systemRandomBytes }, SENT);
  return { outcome, asked };
}

test('no outcome is false, whatever happens to the server between the questions and during them', async () => {
  let committed = 0;
  let aborted = 0;
  for (const history of histories(6)) {
    const wasWritten = history.includes(COMMITTED);
    const views = history.slice(1).map((now, n) => [history[n] ?? now, now] as const);
    const { outcome } = await ask(views);
    if (outcome === 'committed') {
      committed += 1;
      expect(wasWritten).toBe(true);
    }
    if (outcome === 'aborted') {
      aborted += 1;
      expect(wasWritten).toBe(false);
    }
  }
  expect(committed).toBeGreaterThan(0);
  expect(aborted).toBeGreaterThan(0);
});

test('a standby that lags behind proves a commit by its row, and nothing by its absence', async () => {
  for (const status of ['in progress', 'committed', 'aborted', 'future'] as const) {
    const behind = { ...LOST, status, standby: true };
    expect(await ask([[behind, behind]])).toEqual({ outcome: 'unknown', asked: 6 });
    const replayed = { ...COMMITTED, standby: true };
    expect(
      await ask([
        [behind, behind],
        [replayed, replayed],
      ]),
    ).toEqual({ outcome: 'committed', asked: 2 });
  }
});

test('a transaction that is committed while the question runs is found by the next one', async () => {
  expect(
    await ask([
      [RUNNING, COMMITTED],
      [COMMITTED, COMMITTED],
    ]),
  ).toEqual({ outcome: 'committed', asked: 2 });
});

test('an id that is not assigned yet proves that its transaction was not committed', async () => {
  expect(await ask([[LOST, LOST]])).toEqual({ outcome: 'aborted', asked: 1 });
});

test('an id that another transaction has committed is asked about twice, no more', async () => {
  const another: Server = { ...LOST, status: 'committed' };
  expect(await ask([[another, another]])).toEqual({ outcome: 'unknown', asked: 2 });
});

test('a server that does not answer is asked again', async () => {
  const down = { ...RUNNING, down: true };
  expect(
    await ask([
      [down, down],
      [down, down],
      [COMMITTED, COMMITTED],
    ]),
  ).toEqual({ outcome: 'committed', asked: 3 });
});

test('a producer asks for 40 seconds', async () => {
  let now = 0;
  const clock = {
    now: () => now,
    sleep: async (ms: number) => {
      now += ms;
    },
  };
  const database: Sql = { query: async (text) => ({ rows: [answering(RUNNING, RUNNING, text)] }) };
  const cause = new Error('lost');
  const asked = wasCommitted({ database, clock, random: systemRandomBytes }, SENT, cause);
  await expect(asked).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN', cause });
  expect(now).toBeGreaterThanOrEqual(40_000);
  expect(now).toBeLessThan(42_000);
});
