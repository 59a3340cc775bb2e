import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../lambdas/runtime/base/clock.ts';
import { createMysqlOutbox } from '../../../lambdas/runtime/mysql/mysql-outbox.ts';
import { systemRandomBytes } from '../../../lambdas/runtime/store/event-id.ts';
import { ID, TIME } from '../../../lambdas/runtime/store/mysql/expressions.ts';
import { changeEvents, type OutboxChange } from '../../../lambdas/runtime/store/mysql/outbox-operator.ts';
import type { Database } from '../../../lambdas/runtime/store/sql/database.ts';
import { memoryTelemetry } from '../../../testing/memory-telemetry.ts';
import { explore, type World } from '../../postgres/explorer/schedules.ts';
import { deadEvent, pendingEvent, publishedEvent, statesOf } from '../support/operated.ts';
import { type Rig, startRig } from '../support/rig.ts';
import { leasesPass, relayOnce } from './explored-relay.ts';
import { FAST } from './mysql-store.ts';
import { steppedWorker, waitingIn } from './stepped-pool.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('mysql-operator-explorer', FAST);
});
afterAll(() => rig.close());

/** One switch, or one crash, is explored at each statement. A single relay has no lease that another one could wait for. */
const BOUNDS = { switches: 1, crashes: 1, passes: 0 };

const PRODUCER = { service: 'things', tableName: 'Mailroom', publishes: ['ThingHappened'] };

/** The tables that the actors write. */
const TABLES = ['event', 'pending', 'published', 'dead', 'discarded', 'cancelled', 'commit', 'operation'];

/** The changes of one operator, in their order. */
type Changes = readonly OutboxChange[];

interface Setting {
  readonly operators: readonly Changes[];
  /** A producer also cancels the event that is due. @default false */
  readonly cancels?: boolean;
  readonly rewrite?: (text: string) => string;
}

/**
 * An event that is due, a DEAD one and a published one; a relay, operators and a producer. Of each event, the operators change the DEAD one with
 * requeue and discard, and the published one with republish. An operator that crashed repeats its commands as they were.
 */
async function operated({ operators, cancels = false, rewrite }: Setting): Promise<World> {
  for (const table of TABLES) await rig.pool.query(`DELETE FROM mailroom.${table}`);
  const { database } = rig;
  const sentAt = Date.now() - 60_000;
  const due = await pendingEvent(rig, Date.now() - 1_000);
  const dead = await deadEvent(rig);
  const sent = await publishedEvent(rig, sentAt);
  const published: string[] = [];
  let wake: () => void = () => {};
  const operate = async <Tx>(of: Database<Tx>, changes: Changes) => {
    const deps = { database: of, clock: systemClock, random: systemRandomBytes };
    for (const change of changes)
      await changeEvents(deps, change, [change === 'republish' ? sent : dead], 'a test', sentAt);
  };
  const cancel = async <Tx>(of: Database<Tx>) => {
    const outbox = createMysqlOutbox({ config: PRODUCER, database: of, telemetry: memoryTelemetry() });
    await of.transaction((tx) => outbox.cancel(tx, due));
  };
  const work = [
    <Tx>(of: Database<Tx>) => relayOnce(of, published),
    ...operators.map(
      (changes) =>
        <Tx>(of: Database<Tx>) =>
          operate(of, changes),
    ),
    ...(cancels ? [cancel] : []),
  ];
  const workers = work.map((run) => {
    const worker = steppedWorker(rig.pool, () => wake(), rewrite);
    worker.run(() => run(worker.database));
    return worker;
  });
  /** Everything that is left: an operator's second try, and a relay for what waits. */
  const finish = async (crashed: number | undefined) => {
    await operate(database, operators[Number(crashed) - 1] ?? []);
    await leasesPass(database);
    await relayOnce(database, published);
  };
  return {
    workers,
    waiting: () => waitingIn(rig.pool),
    changed: () =>
      new Promise((resolve) => {
        wake = resolve;
      }),
    pass: async () => {},
    verdict: async (crashed) => {
      const failed = workers.map((worker) => worker.failure()).find((error) => error !== undefined);
      if (failed !== undefined) return `a worker failed with ${String(failed)}`;
      await finish(crashed);
      const isCancelled = (await rig.rows('SELECT 1 FROM mailroom.cancelled')).length > 0;
      const isDiscarded = (await rig.rows('SELECT 1 FROM mailroom.discarded')).length > 0;
      const all = operators.flat();
      // A relay that crashed after its publish publishes once more.
      const most = crashed === 0 ? 2 : 1;
      const expected = [
        { name: 'due', id: due, times: isCancelled ? 0 : 1, state: isCancelled ? [] : ['published'] },
        {
          name: 'DEAD',
          id: dead,
          times: all.includes('requeue') && !isDiscarded ? 1 : 0,
          state: isDiscarded ? ['discarded'] : [all.includes('requeue') ? 'published' : 'dead'],
        },
        { name: 'published', id: sent, times: all.includes('republish') ? 1 : 0, state: ['published'] },
      ];
      for (const { name, id, times, state } of expected) {
        const found = published.filter((one) => one === id).length;
        if (found < times || found > times * most) return `the ${name} event: published ${found} times`;
        const states = await statesOf(rig, id);
        if (states.join() !== state.join()) return `the ${name} event: in ${states.join(' and ')}`;
      }
      const logged = (await rig.rows('SELECT DISTINCT subject FROM mailroom.operation')).length;
      const changed = new Set(all.map((change) => change === 'republish')).size;
      return logged === changed ? undefined : `the log names ${logged} events`;
    },
  };
}

/** Takes a clause away, and shows that a statement had it. */
async function without(setting: Setting, clause: string, replacement: string) {
  let found = 0;
  const rewrite = (text: string) => {
    if (text.includes(clause)) found += 1;
    return text.replaceAll(clause, replacement);
  };
  const { violation } = await explore(() => operated({ ...setting, rewrite }), { ...BOUNDS, crashes: 0 });
  expect(found).toBeGreaterThan(0);
  return violation;
}

const REPAIRS = { operators: [['republish', 'republish']], cancels: true } as const;
const OPPOSITE = { operators: [['requeue'], ['discard']] } as const;

test.each([
  ["a relay, a producer's cancel, an operator who publishes an event again twice, and one crash", REPAIRS],
  ['a relay, an operator who requeues, one who discards the same event, and one crash', OPPOSITE],
] as const)(
  '%s: no event is lost, published after a cancel or a discard, or published twice unless the relay crashed, in every schedule',
  async (_name, setting) => {
    const { schedules, violation } = await explore(() => operated(setting), BOUNDS);
    expect(violation).toBeUndefined();
    expect(schedules).toBeGreaterThan(50);
  },
);

test('finds a republish without the time at which the operator saw the event sent', async () => {
  const clause = `COALESCE(p.resent_at, p.published_at) <= ${TIME}`;
  const violation = await without(REPAIRS, clause, `${TIME} IS NOT NULL`);
  expect(violation).toMatch(/^the published event: published 2 times/);
});

test('finds a requeue and a discard that do not lock the DEAD event', async () => {
  const clause = `mailroom.dead p WHERE p.event_id = ${ID} FOR UPDATE`;
  const violation = await without(OPPOSITE, clause, clause.replace(' FOR UPDATE', ''));
  expect(violation).toMatch(/^the DEAD event: /);
});

test('finds a cancel of an event that a relay has claimed', async () => {
  const violation = await without(REPAIRS, `p.due_at = ${TIME} AND p.fence IS NULL`, `${TIME} IS NOT NULL`);
  expect(violation).toMatch(/^the due event: published 1 times/);
});
