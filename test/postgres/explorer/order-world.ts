import type { Pool } from 'pg';
import { CLOCK_SKEW_MS } from '../../../lambdas/runtime/base/clock.ts';
import { isMailroomError } from '../../../lambdas/runtime/base/errors.ts';
import type { Inbox } from '../../../lambdas/runtime/consume/inbox-port.ts';
import { nodePostgres, type PgClient } from '../../../lambdas/runtime/postgres/databases.ts';
import { mintEventId, systemRandomBytes } from '../../../lambdas/runtime/store/event-id.ts';
import { lastKey } from '../../../lambdas/runtime/store/keys.ts';
import { Overtaken, orderVerdict } from '../../../lambdas/runtime/store/last-sequence.ts';
import { postgresInbox } from '../../../lambdas/runtime/store/postgres/inbox.ts';
import type { Database } from '../../../lambdas/runtime/store/postgres/sql.ts';
import { manualClock } from '../../../testing/index.ts';
import { FUNCTION_MS, LEASE_MS, sent, shift, testOutbox } from '../inbox-rig.ts';
import type { World } from './schedules.ts';
import { type SteppedWorker, steppedWorker } from './stepped-pool.ts';

/** A setting of {@link twoEvents}. */
export interface OrderSetting {
  readonly mode: 'latest' | 'strict';
  /** The aggregate has a number: the events are its second and third one. @default they are the first ones */
  readonly begun?: boolean;
  /** Changes a statement, for a hole. @default none */
  readonly rewrite?: (text: string) => string;
}

const KEY = lastKey({
  consumer: 'worker',
  source: 'shop',
  group: 'g',
  aggregateType: 'Thing',
  aggregateId: 'thing-1',
}).PK;

/**
 * Two workers, each with the message of one of two consecutive events of an aggregate. The handler reads the state of the aggregate, and commits the state after
 * its event: it must have read that of the event before it.
 */
export async function twoEvents(pool: Pool, { mode, begun = false, rewrite }: OrderSetting): Promise<World> {
  const clock = manualClock();
  const plain = nodePostgres(pool);
  await plain.query('TRUNCATE mailroom.inbox, mailroom.effect, mailroom.last_sequence, payment');
  const before = begun ? 1 : 0;
  if (begun)
    await plain.query("INSERT INTO mailroom.last_sequence (consumer, place, last) VALUES ('worker', $1, 1)", [
      KEY.slice('LAST#worker#'.length),
    ]);
  const messages = [before + 1, before + 2].map((sequence) => ({
    sequence,
    eventId: mintEventId(clock.now(), 2),
  }));
  let wake: () => void = () => {};

  const inboxOn = (database: Database<PgClient>): Inbox => {
    const settings = { consumer: 'worker', leaseMs: LEASE_MS, inboxRetentionDays: 35 };
    return postgresInbox({
      settings: { ...settings, clock, random: systemRandomBytes },
      database,
      outbox: testOutbox,
    });
  };

  async function receive(database: Database<PgClient>, { sequence, eventId }: (typeof messages)[number]) {
    const inbox = inboxOn(database);
    const order = { key: KEY, mode, sequence };
    const seen = await inbox.lastSequence(KEY);
    const message = { eventId, messageId: 'first', place: { order, seen, skipsRejected: false } };
    const verdict = orderVerdict(order, seen, eventId);
    if (verdict === 'waits') return;
    const options = { alone: true, firstReceive: false, endsBy: clock.now() + FUNCTION_MS };
    const result = await inbox.claim(message, options);
    if (result.status !== 'claimed') return;
    const { claim } = result;
    if (verdict !== 'runs') {
      await inbox.supersede(claim, seen.last);
      return;
    }
    const [state] = (await database.query('SELECT note FROM payment ORDER BY id DESC LIMIT 1')).rows;
    const from = Number(
      String(state?.note ?? before)
        .split('>')
        .at(-1),
    );
    const end = await inbox.commit(
      claim,
      async (tx) => {
        const text = 'INSERT INTO payment (event_id, note) VALUES ($1, $2)';
        await (tx as PgClient).query(text, [eventId, `${from}>${sequence}`]);
        return {};
      },
      {} as never,
      sent,
    );
    if (end.status !== 'failed') return;
    if (end.error instanceof Overtaken) await inbox.release(claim, clock.now(), {});
    else if (!isMailroomError(end.error, 'FENCE_LOST')) throw end.error;
  }

  const workers: SteppedWorker[] = messages.map((message) => {
    const worker = steppedWorker(pool, () => wake(), rewrite);
    worker.run(() => receive(nodePostgres(worker.pool), message));
    return worker;
  });

  return {
    workers,
    changed: () =>
      new Promise((resolve) => {
        wake = resolve;
      }),
    pass: () => shift(plain, LEASE_MS + CLOCK_SKEW_MS + 1_000),
    verdict: async () => {
      const failed = workers.map((worker) => worker.failure()).find((error) => error !== undefined);
      if (failed !== undefined) return `a worker failed with ${String(failed)}`;
      for (let receives = 0; receives < 3; receives += 1) {
        await shift(plain, FUNCTION_MS + 10_000);
        for (const message of messages) await receive(plain, message);
      }
      const open = await plain.query("SELECT 1 FROM mailroom.inbox WHERE status <> 'PROCESSED'");
      if (open.rows.length > 0) return 'a message is left';
      const { rows } = await plain.query("SELECT string_agg(note, ' ' ORDER BY id) AS states FROM payment");
      const states = String(rows[0]?.states);
      const [first, second] = [before + 1, before + 2];
      const all = `${before}>${first} ${first}>${second}`;
      const right = mode === 'strict' ? [all] : [all, `${before}>${second}`];
      return right.includes(states) ? undefined : `states ${states}`;
    },
  };
}
