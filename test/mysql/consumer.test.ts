import type { PoolConnection } from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { AlreadyProcessed, PoisonMessage } from '../../lambdas/runtime/base/errors.ts';
import type { Around } from '../../lambdas/runtime/consume/around.ts';
import type { DatabaseHandlers } from '../../lambdas/runtime/database/database-handlers.ts';
import { createMysqlInboxProcessor } from '../../lambdas/runtime/mysql/mysql-consumer.ts';
import { mysqlHandlers } from '../../lambdas/runtime/mysql/mysql-handlers.ts';
import { memoryTelemetry } from '../../testing/index.ts';
import { newEventId, sqsEvent } from '../postgres/consumer-parts.ts';
import { FUNCTION_MS } from '../postgres/inbox-rig.ts';
import { consumerConfig, ThingHappened } from '../support/runtime-rig.ts';
import { mysqlConsumer } from './consumer-parts.ts';
import { PAYMENT, shift, testOutbox } from './inbox-rig.ts';
import { type Rig, startRig } from './support/rig.ts';

let rig: Rig;
let make: DatabaseHandlers<PoolConnection>;

beforeAll(async () => {
  rig = await startRig('mysql-consumer');
  make = mysqlHandlers(rig.database);
  await rig.pool.query(PAYMENT);
  await rig.pool.query('CREATE TABLE mailroom.stock (id INT PRIMARY KEY, n INT NOT NULL)');
  await rig.pool.query('INSERT INTO mailroom.stock VALUES ?', [
    Array.from({ length: 50 }, (_, n) => [n + 1, 0]),
  ]);
});
afterAll(() => rig.close());
beforeEach(async () => {
  await rig.clear();
  await rig.pool.query('DELETE FROM mailroom.payment');
});

const happened = ThingHappened.create({ aggregateId: 'thing-2', data: { n: 2 } });
const pay = (tx: PoolConnection, note = 'paid') =>
  tx.query("INSERT INTO mailroom.payment (event_id, note) VALUES ('paid', ?)", [note]);
const count = async (table: string) => (await rig.rows(`SELECT 1 FROM mailroom.${table}`)).length;
const row = async () => (await rig.rows('SELECT * FROM mailroom.inbox'))[0];

/** Makes a transaction the victim of a deadlock: another one, which has changed more rows, waits for its row. */
async function deadlock(tx: PoolConnection): Promise<void> {
  const change = 'UPDATE mailroom.stock SET n = n + 1 WHERE id = ?';
  const other = await rig.pool.getConnection();
  await tx.query(change, [1]);
  await other.query('START TRANSACTION');
  await other.query('UPDATE mailroom.stock SET n = n + 1 WHERE id >= 2');
  const blocked = other.query(change, [1]);
  await tx.query(change, [2]).finally(async () => {
    await blocked;
    await other.query('ROLLBACK');
    other.release();
  });
}

describe('a transactional handler', () => {
  test('writes, publishes and is recorded once, of four deliveries at a time and one later', async () => {
    const handle = make.transactional(ThingHappened, async (_event, { tx }) => {
      await pay(tx);
      return { events: [happened] };
    });
    const { deliver, telemetry } = mysqlConsumer(rig.database, [handle]);
    const eventId = newEventId();
    expect(await Promise.all([1, 2, 3, 4].map(() => deliver(eventId)))).toEqual([[], [], [], []]);
    expect(await deliver(eventId, 2)).toEqual([]);
    expect([await count('payment'), await count('event')]).toEqual([1, 1]);
    expect(telemetry.counted('MessagesDuplicate')).toBe(4);
    expect(telemetry.counted('EventsCommitted')).toBe(1);
  });

  test('that throws leaves nothing, and runs under a claim when it is received again', async () => {
    const failing = vi.fn(async (_event: unknown, { tx }: { tx: PoolConnection }) => {
      await pay(tx);
      if (failing.mock.calls.length < 3) throw new Error('not yet');
      return { events: [happened] };
    });
    const { deliver } = mysqlConsumer(rig.database, [make.transactional(ThingHappened, failing)]);
    const eventId = newEventId();
    expect(await deliver(eventId)).toEqual(['none']);
    expect([await count('payment'), await row()]).toEqual([0, undefined]);
    expect(await deliver(eventId, 2)).toEqual(['none']);
    expect(await row()).toMatchObject({ status: 'FAILED', attempts: 1 });
    expect(await deliver(eventId, 3)).toEqual([]);
    expect(await row()).toMatchObject({ status: 'PROCESSED', attempts: 2 });
    expect([await count('payment'), await count('event')]).toEqual([1, 1]);
  });

  test('that meets a deadlock runs again at once', async () => {
    let runs = 0;
    const handle = make.transactional(ThingHappened, async (_event, { tx }) => {
      runs += 1;
      if (runs === 1) await deadlock(tx);
      await pay(tx, 'after the deadlock');
      return { events: [happened] };
    });
    expect(await mysqlConsumer(rig.database, [handle]).deliver(newEventId())).toEqual([]);
    expect(runs).toBe(2);
    expect(await rig.rows("SELECT 1 FROM mailroom.payment WHERE note = 'after the deadlock'")).toHaveLength(
      1,
    );
    expect(await count('event')).toBe(1);
  });

  test('leaves nothing if the function around it fails after it, and commits once if that succeeds', async () => {
    const handle = make.transactional(ThingHappened, async (_event, { tx }) => {
      await pay(tx);
      return { events: [happened] };
    });
    let runs = 0;
    const around: Around = async (_run, next) => {
      await next();
      runs += 1;
      if (runs === 1) throw new AlreadyProcessed('not for it to say');
      if (runs === 2) throw new Error('not yet');
    };
    const { deliver } = mysqlConsumer(rig.database, [handle], {}, around);
    const eventId = newEventId();
    expect(await deliver(eventId)).toEqual(['BAD_AROUND']);
    expect([await count('payment'), await row()]).toEqual([0, undefined]);
    expect(await deliver(eventId, 2)).toEqual(['none']);
    expect(await row()).toMatchObject({ status: 'FAILED', attempts: 1 });
    expect(await deliver(eventId, 3)).toEqual([]);
    expect(await row()).toMatchObject({ status: 'PROCESSED', attempts: 2 });
    expect([await count('payment'), await count('event')]).toEqual([1, 1]);
  });

  test('that already did its work is recorded as processed', async () => {
    const handle = make.transactional(ThingHappened, async (_event, { tx }) => {
      await pay(tx);
      throw new AlreadyProcessed('it is paid');
    });
    expect(await mysqlConsumer(rig.database, [handle]).deliver(newEventId())).toEqual([]);
    expect([await count('payment'), (await row())?.status]).toEqual([0, 'PROCESSED']);
  });
});

describe.each(['transactional', 'leased'] as const)('a %s handler that ends its transaction', (kind) => {
  test.each<[string, (tx: PoolConnection) => Promise<unknown>, left: string | undefined]>([
    ['by the error of a deadlock, which it catches', (tx) => deadlock(tx).catch(() => {}), undefined],
    [
      'by another transaction',
      (tx) => tx.query('START TRANSACTION').then(() => tx.query('COMMIT')),
      'PROCESSING',
    ],
    ['by DDL', (tx) => tx.query('CREATE TABLE IF NOT EXISTS mailroom.side_effect (id INT)'), 'PROCESSING'],
  ])('%s fails, commits no event, and may run again', async (_how, end, left) => {
    let isFixed = false;
    let meanwhile: unknown;
    const work = async (tx: PoolConnection) => {
      if (!isFixed) {
        await end(tx);
        meanwhile = (await row())?.status; // here, the worker may crash
      }
      return { events: [happened] };
    };
    const handler =
      kind === 'leased'
        ? make.leased(ThingHappened, (_event, ctx) => ctx.commit(work))
        : make.transactional(ThingHappened, (_event, { tx }) => work(tx));
    const { deliver } = mysqlConsumer(rig.database, [handler]);
    const eventId = newEventId();
    expect(await deliver(eventId)).toEqual(['TRANSACTION_ENDED']);
    expect(meanwhile).toBe(kind === 'leased' ? 'PROCESSING' : left);
    expect((await row())?.status).toBe(kind === 'leased' ? 'FAILED' : left);
    expect(await count('event')).toBe(0);
    isFixed = true;
    expect(await deliver(eventId, 2)).toEqual([]);
    expect(await row()).toMatchObject({ status: 'PROCESSED', lease_until: null, ends_by: null });
    expect(await count('event')).toBe(1);
  });
});

describe('a leased handler', () => {
  test('that has ended the transaction of its commit cannot commit again: what it committed stays', async () => {
    const codes: unknown[] = [];
    const handle = make.leased(ThingHappened, async (_event, ctx) => {
      const failed = (error: { readonly code: unknown }) => codes.push(error.code);
      await ctx
        .commit(async (tx) => {
          await pay(tx);
          await tx.query('COMMIT');
          throw new Error('too late');
        })
        .catch(failed);
      await ctx.commit((tx) => pay(tx).then(() => ({}))).catch(failed);
    });
    expect(await mysqlConsumer(rig.database, [handle]).deliver(newEventId())).toEqual(['TRANSACTION_ENDED']);
    expect(codes).toEqual(['TRANSACTION_ENDED', 'AFTER_COMMIT']);
    expect([await count('payment'), (await row())?.status]).toEqual([1, 'FAILED']);
  });

  test('charges once, although its first attempt fails before its commit', async () => {
    const charge = vi.fn(async () => 'charged');
    let runs = 0;
    const handle = make.leased(ThingHappened, async (_event, ctx) => {
      const note = await ctx.once('charge', charge);
      runs += 1;
      if (runs === 1) throw new Error('not yet');
      await ctx.commit(async (tx) => {
        await pay(tx, note);
        return { events: [happened] };
      });
    });
    const { deliver } = mysqlConsumer(rig.database, [handle]);
    const eventId = newEventId();
    expect(await deliver(eventId)).toEqual(['none']);
    expect(await deliver(eventId, 2)).toEqual([]);
    expect(await deliver(eventId, 3)).toEqual([]);
    expect(charge).toHaveBeenCalledOnce();
    expect(await rig.rows('SELECT note FROM mailroom.payment')).toEqual([{ note: 'charged' }]);
    expect(await count('event')).toBe(1);
  });

  test('of four deliveries at a time charges once', async () => {
    const charge = vi.fn(async () => 'charged');
    const handle = make.leased(ThingHappened, (_event, ctx) => ctx.once('charge', charge));
    const { deliver } = mysqlConsumer(rig.database, [handle]);
    const eventId = newEventId();
    const ends = await Promise.all([1, 2, 3, 4].map(() => deliver(eventId)));
    expect(charge).toHaveBeenCalledOnce();
    // One that is judged after the end is a duplicate.
    expect(ends.flat().filter((code) => code !== 'LEASED')).toEqual([]);
    expect((await row())?.status).toBe('PROCESSED');
  });

  test('rolls back a commit beside an effect that it does not await, and its message fails', async () => {
    const handle = make.leased(ThingHappened, async (_event, ctx) => {
      void ctx.once('charge', () => Promise.reject(new Error('the bank is closed')));
      await ctx
        .commit(async (tx) => {
          await pay(tx);
          return {};
        })
        .catch(() => {});
    });
    const { deliver } = mysqlConsumer(rig.database, [handle]);
    expect(await deliver(newEventId())).toEqual(['NOT_AWAITED']);
    expect(await row()).toMatchObject({ status: 'FAILED', attempts: 1 });
    expect([await count('payment'), await count('event')]).toEqual([0, 0]);
  });
});

describe('a message', () => {
  test('that is poison is rejected, stays so, and is processed after its redrive', async () => {
    let isFixed = false;
    const handle = make.leased(ThingHappened, async (_event, ctx) => {
      if (!isFixed) throw new PoisonMessage('not like this');
      await ctx.commit({ events: [happened] });
    });
    const { deliver, telemetry } = mysqlConsumer(rig.database, [handle]);
    const eventId = newEventId();
    expect(await deliver(eventId)).toEqual(['POISON_MESSAGE']);
    expect(await row()).toMatchObject({ status: 'REJECTED', reason: 'POISON_MESSAGE', expires_at: null });
    isFixed = true;
    expect(await deliver(eventId, 2)).toEqual(['POISON_MESSAGE']);
    expect(await deliver(eventId, 1, 'redriven')).toEqual([]);
    expect((await row())?.status).toBe('PROCESSED');
    expect(telemetry.counted('MessagesRejected')).toBe(1);
    expect(await count('event')).toBe(1);
  });

  test('whose worker lost its connection in the commit is taken over: one charge, one payment', async () => {
    const charge = vi.fn(async () => 'charged');
    let runs = 0;
    const handle = make.leased(ThingHappened, async (_event, ctx) => {
      const note = await ctx.once('charge', charge);
      await ctx.commit(async (tx) => {
        runs += 1;
        await pay(tx, note);
        if (runs === 1) await rig.pool.query('KILL ?', [tx.threadId]);
        await tx.query('SELECT 1');
        return {};
      });
    });
    const { deliver } = mysqlConsumer(rig.database, [handle]);
    const eventId = newEventId();
    expect(await deliver(eventId)).not.toEqual([]);
    expect(await row()).toMatchObject({ status: 'FAILED', attempts: 0 });
    await shift(rig.rows, FUNCTION_MS);
    expect(await deliver(eventId, 2)).toEqual([]);
    expect(charge).toHaveBeenCalledOnce();
    expect(await count('payment')).toBe(1);
  });
});

describe('a consumer', () => {
  test('refuses the writes of DynamoDB: the attempt fails', async () => {
    const handle = make.leased(ThingHappened, (_event, ctx) => ctx.commit({ writes: [] } as never));
    expect(await mysqlConsumer(rig.database, [handle]).deliver(newEventId())).toEqual(['NO_COMMIT']);
  });

  test('of any source is done, then finds a duplicate', async () => {
    const inbox = createMysqlInboxProcessor({
      config: consumerConfig,
      database: rig.database,
      outbox: testOutbox,
      telemetry: memoryTelemetry(),
    });
    const body = sqsEvent(newEventId(), 1, 'first', 1).Records[0]?.body ?? '';
    const handle = make.transactional(ThingHappened, async (_event, { tx }) => {
      await pay(tx);
      return {};
    });
    expect(await inbox.process({ id: 'orders/0/17', body }, handle)).toEqual({ kind: 'done' });
    expect(await inbox.process({ id: 'orders/0/18', body }, [handle])).toEqual({ kind: 'duplicate' });
    expect(await count('payment')).toBe(1);
  });
});
