import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { AlreadyProcessed, PoisonMessage } from '../../lambdas/runtime/base/errors.ts';
import type { Around } from '../../lambdas/runtime/consume/around.ts';
import type {
  DatabaseHandlers,
  DatabaseLeasedContext,
} from '../../lambdas/runtime/database/database-handlers.ts';
import type { PgClient } from '../../lambdas/runtime/postgres/databases.ts';
import { createPostgresInboxProcessor } from '../../lambdas/runtime/postgres/postgres-consumer.ts';
import { memoryTelemetry } from '../../testing/index.ts';
import { consumerConfig, ThingHappened } from '../support/runtime-rig.ts';
import { newEventId, postgresConsumer, postgresHandlers } from './consumer-parts.ts';
import { FUNCTION_MS, migratedPostgres, shift, testOutbox } from './inbox-rig.ts';

let postgres: Awaited<ReturnType<typeof migratedPostgres>>;
let make: DatabaseHandlers<PgClient>;

beforeAll(async () => {
  postgres = await migratedPostgres('consumer');
  make = postgresHandlers(postgres.database);
});
afterAll(() => postgres.close());
beforeEach(() =>
  postgres.database.query('TRUNCATE mailroom.inbox, mailroom.effect, mailroom.event, payment'),
);

const happened = ThingHappened.create({ aggregateId: 'thing-2', data: { n: 2 } });
const pay = (tx: PgClient) => tx.query("INSERT INTO payment (event_id) VALUES ('paid')");
const count = async (table: string) => (await postgres.database.query(`SELECT 1 FROM ${table}`)).rows.length;
const row = async () => (await postgres.database.query('SELECT * FROM mailroom.inbox')).rows[0];

describe('a transactional handler', () => {
  test('writes, publishes and is recorded once, whatever SQS repeats', async () => {
    const handle = make.transactional(ThingHappened, async (_event, { tx }) => {
      await pay(tx);
      return { events: [happened] };
    });
    const { deliver, telemetry } = postgresConsumer(postgres.database, [handle]);
    const eventId = newEventId();
    expect(await Promise.all([deliver(eventId), deliver(eventId), deliver(eventId)])).toEqual([[], [], []]);
    expect(await deliver(eventId, 2)).toEqual([]);
    expect([await count('payment'), await count('mailroom.event')]).toEqual([1, 1]);
    expect(telemetry.counted('MessagesDuplicate')).toBe(3);
    expect(telemetry.counted('EventsCommitted')).toBe(1);
  });

  test('that throws leaves nothing, and runs under a claim when it is received again', async () => {
    const failing = vi.fn(async (_event: unknown, { tx }: { tx: PgClient }) => {
      await pay(tx);
      if (failing.mock.calls.length < 3) throw new Error('not yet');
      return { events: [happened] };
    });
    const { deliver } = postgresConsumer(postgres.database, [make.transactional(ThingHappened, failing)]);
    const eventId = newEventId();
    expect(await deliver(eventId)).toEqual(['none']);
    expect([await count('payment'), await row()]).toEqual([0, undefined]);
    expect(await deliver(eventId, 2)).toEqual(['none']);
    expect(await row()).toMatchObject({ status: 'FAILED', attempts: 1 });
    expect(await deliver(eventId, 3)).toEqual([]);
    expect(await row()).toMatchObject({ status: 'PROCESSED', attempts: 2 });
    expect([await count('payment'), await count('mailroom.event')]).toEqual([1, 1]);
  });

  test('that meets a deadlock runs again at once', async () => {
    let runs = 0;
    const handle = make.transactional(ThingHappened, async (_event, { tx }) => {
      runs += 1;
      await pay(tx);
      if (runs === 1) await tx.query("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$");
      return {};
    });
    expect(await postgresConsumer(postgres.database, [handle]).deliver(newEventId())).toEqual([]);
    expect([runs, await count('payment')]).toEqual([2, 1]);
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
    const { deliver } = postgresConsumer(postgres.database, [handle], {}, around);
    const eventId = newEventId();
    expect(await deliver(eventId)).toEqual(['BAD_AROUND']);
    expect([await count('payment'), await row()]).toEqual([0, undefined]);
    expect(await deliver(eventId, 2)).toEqual(['none']);
    expect(await row()).toMatchObject({ status: 'FAILED', attempts: 1 });
    expect(await deliver(eventId, 3)).toEqual([]);
    expect(await row()).toMatchObject({ status: 'PROCESSED', attempts: 2 });
    expect([await count('payment'), await count('mailroom.event')]).toEqual([1, 1]);
  });

  test('that already did its work is recorded as processed', async () => {
    const handle = make.transactional(ThingHappened, async (_event, { tx }) => {
      await pay(tx);
      throw new AlreadyProcessed('it is paid');
    });
    expect(await postgresConsumer(postgres.database, [handle]).deliver(newEventId())).toEqual([]);
    expect([await count('payment'), (await row())?.status]).toEqual([0, 'PROCESSED']);
  });
});

describe('a leased handler', () => {
  test.each<[string, (ctx: DatabaseLeasedContext<PgClient>) => Promise<unknown>]>([
    [
      'beside an effect that it does not await',
      (ctx) => {
        void ctx.once('charge', () => Promise.reject(new Error('the bank is closed')));
        return ctx.commit(async (tx) => {
          await pay(tx);
          return {};
        });
      },
    ],
    [
      'whose work starts an effect',
      (ctx) =>
        ctx.commit(async (tx) => {
          await pay(tx);
          void ctx.once('charge', async () => 1);
          return {};
        }),
    ],
    [
      'beside another commit',
      (ctx) =>
        Promise.all([ctx.commit((tx) => pay(tx).then(() => ({}))), ctx.commit({ events: [happened] })]),
    ],
  ])(
    'rolls back a commit %s, and its message fails, also if it catches the refusal',
    async (_what, handle) => {
      const caught = make.leased(ThingHappened, async (_event, ctx) => handle(ctx).catch(() => {}));
      const { deliver } = postgresConsumer(postgres.database, [caught]);
      expect(await deliver(newEventId())).toEqual(['NOT_AWAITED']);
      expect(await row()).toMatchObject({ status: 'FAILED', attempts: 1 });
      expect([await count('payment'), await count('mailroom.event')]).toEqual([0, 0]);
    },
  );
});

describe('a message', () => {
  test('that is poison is rejected, stays so, and is processed after its redrive', async () => {
    let isFixed = false;
    const handle = make.leased(ThingHappened, async (_event, ctx) => {
      if (!isFixed) throw new PoisonMessage('not like this');
      await ctx.commit({ events: [happened] });
    });
    const { deliver, telemetry } = postgresConsumer(postgres.database, [handle]);
    const eventId = newEventId();
    expect(await deliver(eventId)).toEqual(['POISON_MESSAGE']);
    expect(await row()).toMatchObject({ status: 'REJECTED', reason: 'POISON_MESSAGE', expires_at: null });
    isFixed = true;
    expect(await deliver(eventId, 2)).toEqual(['POISON_MESSAGE']);
    expect(await deliver(eventId, 1, 'redriven')).toEqual([]);
    expect(await row()).toMatchObject({ status: 'PROCESSED' });
    expect(telemetry.counted('MessagesRejected')).toBe(1);
    expect(await count('mailroom.event')).toBe(1);
  });

  test('whose payload fails its schema, and one whose attempts are exhausted, are rejected', async () => {
    const handle = make.leased(ThingHappened, async () => {
      throw new Error('down');
    });
    const { deliver } = postgresConsumer(postgres.database, [handle], { maxAttempts: 2 });
    expect(await deliver(newEventId(), 1, 'first', 'no number')).toEqual(['INVALID_PAYLOAD']);
    const eventId = newEventId();
    expect(await deliver(eventId)).toEqual(['none']);
    expect(await deliver(eventId, 2)).toEqual(['ATTEMPTS_EXHAUSTED']);
  });

  test('whose worker is killed between its effect and its COMMIT is taken over: one charge, one payment', async () => {
    const eventId = newEventId();
    const child = spawn(
      process.execPath,
      ['--import', 'tsx', 'test/postgres/worker.child.ts', postgres.server.url, eventId],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const exit = once(child, 'exit');
    const [said] = await once(child.stdout, 'data');
    expect(String(said)).toContain('written');
    child.kill('SIGKILL');
    await exit;
    expect(await count('payment')).toBe(0);
    const charge = vi.fn(async () => 'charged again');
    const handle = make.leased(ThingHappened, async (_event, ctx) => {
      const charged = await ctx.once('charge', charge);
      await ctx.commit(async (tx) => {
        await tx.query('INSERT INTO payment (event_id, note) VALUES ($1, $2)', [eventId, charged]);
        return {};
      });
    });
    const { deliver, telemetry } = postgresConsumer(postgres.database, [handle]);
    expect(await deliver(eventId, 2)).toEqual(['LEASED']);
    await shift(postgres.database, FUNCTION_MS);
    expect(await deliver(eventId, 3)).toEqual([]);
    expect(charge).not.toHaveBeenCalled();
    const { rows } = await postgres.database.query('SELECT note FROM payment');
    expect(rows).toEqual([{ note: 'charged by the first worker' }]);
    expect(telemetry.counted('LeasesExpired')).toBe(1);
  });
});

describe('a consumer', () => {
  test('refuses the writes of DynamoDB: the attempt fails', async () => {
    const handle = make.leased(ThingHappened, (_event, ctx) => ctx.commit({ writes: [] } as never));
    expect(await postgresConsumer(postgres.database, [handle]).deliver(newEventId())).toEqual(['NO_COMMIT']);
  });
});

test('a process takes messages of any source: done, then a duplicate', async () => {
  const { database } = postgres;
  const inbox = createPostgresInboxProcessor({
    config: consumerConfig,
    database,
    outbox: testOutbox,
    telemetry: memoryTelemetry(),
  });
  const detail = {
    eventId: newEventId(),
    type: 'ThingHappened',
    version: 2,
    aggregateType: 'Thing',
    aggregateId: 'thing-1',
    correlationId: 'chain',
    occurredAt: Date.now(),
    data: { n: 1 },
  };
  const body = JSON.stringify({ source: 'things', 'detail-type': 'ThingHappened', detail });
  const handle = make.transactional(ThingHappened, async (_event, { tx }) => {
    await pay(tx);
    return {};
  });
  expect(await inbox.process({ id: 'orders/0/17', body }, handle)).toEqual({ kind: 'done' });
  expect(await inbox.process({ id: 'orders/0/18', body }, [handle])).toEqual({ kind: 'duplicate' });
  expect(await count('payment')).toBe(1);
});

test('a consumer whose name is too long for an index is refused before it takes a message', () => {
  const create = (consumer: string) => postgresConsumer(postgres.database, [], { consumer });
  expect(() => create('é'.repeat(256))).not.toThrow();
  expect(() => create('é'.repeat(257))).toThrow(
    expect.objectContaining({
      code: 'BAD_CONFIG',
      message: expect.stringMatching(/^consumer has 514 bytes/),
    }),
  );
});

test('the longest name of a consumer fits every index', async () => {
  const handle = make.leased(ThingHappened, async (_event, ctx) => {
    await ctx.once('x'.repeat(64), async () => 1);
    await ctx.commit({});
  });
  const { deliver } = postgresConsumer(postgres.database, [handle], { consumer: randomText(512) });
  expect(await deliver(newEventId())).toEqual([]);
});

/** Text that does not compress. */
function randomText(length: number): string {
  return randomBytes(length).toString('base64').slice(0, length);
}

test('a statement of a handler that a read-only server refuses counts no attempt', async () => {
  let runs = 0;
  const handle = make.leased(ThingHappened, async (_event, ctx) => {
    await ctx.commit(async (tx) => {
      runs += 1;
      if (runs === 1) await tx.query('SET TRANSACTION READ ONLY');
      await pay(tx);
      return {};
    });
  });
  const { deliver } = postgresConsumer(postgres.database, [handle]);
  const eventId = newEventId();
  expect(await deliver(eventId)).toEqual(['25006']);
  expect(await row()).toMatchObject({ status: 'FAILED', attempts: 0 });
  expect(await deliver(eventId, 2)).toEqual([]);
  expect(await row()).toMatchObject({ status: 'PROCESSED', attempts: 1 });
});
