import type { PoolConnection } from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../lambdas/runtime/base/clock.ts';
import { PoisonMessage } from '../../lambdas/runtime/base/errors.ts';
import { strict } from '../../lambdas/runtime/base/order.ts';
import type {
  DatabaseHandler,
  DatabaseHandlerOptions,
  DatabaseHandlers,
} from '../../lambdas/runtime/database/database-handlers.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import { createMysqlConsumer } from '../../lambdas/runtime/mysql/mysql-consumer.ts';
import { mysqlHandlers } from '../../lambdas/runtime/mysql/mysql-handlers.ts';
import { seedMysqlOrder } from '../../lambdas/runtime/mysql/mysql-order-seed.ts';
import { lastKey } from '../../lambdas/runtime/store/keys.ts';
import { mysqlInboxChanges } from '../../lambdas/runtime/store/mysql/inbox-operator.ts';
import { raiseLast, readLastSequence } from '../../lambdas/runtime/store/mysql/last-sequence.ts';
import type { Database } from '../../lambdas/runtime/store/sql/database.ts';
import { lambdaContext, memoryTelemetry } from '../../testing/index.ts';
import { newEventId } from '../postgres/consumer-parts.ts';
import { LEASE_MS } from '../postgres/inbox-rig.ts';
import { hurriedClock, vanishing } from '../support/lost-answers.ts';
import { consumerConfig, ThingHappened } from '../support/runtime-rig.ts';
import { PAYMENT, testOutbox } from './inbox-rig.ts';
import { type Rig, startRig } from './support/rig.ts';

const Counted = defineEvent({
  source: 'things',
  type: 'Counted',
  version: 1,
  aggregateType: 'Thing',
  schema: ThingHappened.schema,
  sequence: true,
});
const happened = ThingHappened.create({ aggregateId: 'thing-2', data: { n: 2 } });
const KEY = lastKey({
  consumer: 'worker',
  source: 'things',
  group: 'strict',
  aggregateType: 'Thing',
  aggregateId: 'thing-1',
}).PK;

let rig: Rig;
/** Its sessions wait for a lock for a second. */
let impatient: ReturnType<Rig['poolOf']>;

beforeAll(async () => {
  rig = await startRig('mysql-order');
  await rig.pool.query(PAYMENT);
  impatient = rig.poolOf();
  impatient.on('connection', (connection) => {
    connection.query('SET SESSION innodb_lock_wait_timeout = 1');
  });
});
afterAll(async () => {
  await impatient.end();
  await rig.close();
});
beforeEach(async () => {
  await rig.clear();
  await rig.pool.query('DELETE FROM mailroom.payment');
});

const last = () => readLastSequence(rig.database, KEY);
const begin = (sequence: number) =>
  rig.database.transaction((tx) =>
    raiseLast(rig.database.in(tx), { key: KEY, sequence, seen: { last: 0, exists: false } }),
  );
const notes = async () =>
  (await rig.rows('SELECT note FROM mailroom.payment ORDER BY id')).map(({ note }) => note);
const statuses = async () =>
  (await rig.rows('SELECT status FROM mailroom.inbox')).map(({ status }) => status);
const pay = (tx: PoolConnection, note: string) =>
  tx.query("INSERT INTO mailroom.payment (event_id, note) VALUES ('paid', ?)", [note]);

/** A strict consumer. */
function counting(
  handlers: (make: DatabaseHandlers<PoolConnection>) => readonly DatabaseHandler<PoolConnection>[],
  database: Database<PoolConnection> = rig.database,
  clock: Clock = systemClock,
) {
  const telemetry = memoryTelemetry();
  const handle = createMysqlConsumer({
    config: { ...consumerConfig, leaseMs: LEASE_MS, order: strict(), maxReceives: 5 },
    database,
    clock,
    outbox: testOutbox,
    queue: { changeVisibility: async () => {} },
    handlers: handlers(mysqlHandlers(database)),
    telemetry,
  });
  const invoke = (event: object) =>
    handle(event as never, lambdaContext({ clock: { now: Date.now }, timeoutMs: LEASE_MS } as never));
  const bodyOf = (sequence: number, eventId: string) => {
    const { source, type, version } = Counted;
    const known = { eventId, type, version, aggregateType: 'Thing', aggregateId: 'thing-1', sequence };
    const detail = { ...known, correlationId: 'chain', occurredAt: Date.now(), data: { n: sequence } };
    return JSON.stringify({ source, 'detail-type': type, detail });
  };
  return {
    telemetry,
    /** @returns the code of its failure, if it failed */
    deliver: async (sequence: number, eventId = newEventId(), receives = 1, messageId = 'first') => {
      const attributes = { ApproximateReceiveCount: String(receives), SentTimestamp: String(Date.now()) };
      const body = bodyOf(sequence, eventId);
      const { batchItemFailures } = await invoke({
        Records: [{ messageId, receiptHandle: messageId, body, attributes }],
      });
      return batchItemFailures.map(
        (failure) => (Reflect.get(failure, 'error') as { code?: string }).code ?? 'none',
      );
    },
    reject: async (sequence: number, eventId: string) => {
      const request = { by: 'ada', reason: 'the customer left', body: bodyOf(sequence, eventId) };
      return Reflect.get(await invoke({ mailroomReject: request }), 'settled');
    },
  };
}

type Options = DatabaseHandlerOptions<typeof Counted, PoolConnection>;

const booking = (make: DatabaseHandlers<PoolConnection>, options?: Options) =>
  make.transactional(
    Counted,
    async ({ data }, { tx }) => {
      if (data.n === 13) throw new PoisonMessage('unlucky');
      await pay(tx, String(data.n));
      return { events: [happened] };
    },
    options,
  );

describe('a strict consumer', () => {
  test('applies each event after its predecessor, and absorbs what was applied', async () => {
    const { deliver, telemetry } = counting((make) => [booking(make)]);
    const [first, second] = [newEventId(), newEventId()];
    expect(await deliver(2, second)).toEqual(['OUT_OF_ORDER']);
    expect(await deliver(1, first)).toEqual([]);
    expect(await deliver(2, second, 2)).toEqual([]);
    expect(await deliver(1, first, 2)).toEqual([]);
    expect(await deliver(2, newEventId())).toEqual(['SEQUENCE_REPEATED']);
    expect(await notes()).toEqual(['1', '2']);
    expect(await last()).toMatchObject({ last: 2, eventId: second });
    expect(telemetry.counted('MessagesOutOfOrder')).toBe(1);
  });

  test('refuses the commit of an event that was overtaken between the reads of its handler and the commit', async () => {
    let overtake = async () => {};
    const { deliver } = counting((make) => [
      make.leased(Counted, async ({ data }, ctx) => {
        await overtake();
        await ctx.commit(async (tx) => {
          await pay(tx, String(data.n));
          return {};
        });
      }),
    ]);
    overtake = async () => {
      overtake = async () => {};
      await deliver(1, newEventId());
    };
    expect(await deliver(1, newEventId())).toEqual(['OUT_OF_ORDER']);
    expect(await notes()).toEqual(['1']);
  });

  test('puts a message back whose number another transaction holds for longer than a lock is waited for', async () => {
    const { deliver } = counting((make) => [booking(make)], mysql2(impatient));
    const eventId = newEventId();
    await begin(1);
    await rig.database.transaction(async (tx) => {
      await tx.query('UPDATE mailroom.last_sequence SET last = last');
      expect(await deliver(2, eventId)).toEqual(['OUT_OF_ORDER']);
    });
    expect(await deliver(2, eventId, 2)).toEqual([]);
    expect([await notes(), (await last()).last]).toEqual([['2'], 2]);
  });

  test.each(['leased', 'transactional'] as const)(
    'does not raise the number for a %s handler that ended its transaction, and runs it again',
    async (kind) => {
      let isFixed = false;
      const work = async (tx: PoolConnection) => {
        if (!isFixed) await tx.query('CREATE TABLE IF NOT EXISTS mailroom.side_effect (id INT)');
        return { events: [happened] };
      };
      const { deliver } = counting((make) => [
        kind === 'leased'
          ? make.leased(Counted, (_event, ctx) => ctx.commit(work))
          : make.transactional(Counted, (_event, { tx }) => work(tx)),
      ]);
      const eventId = newEventId();
      expect(await deliver(1, eventId)).toEqual(['TRANSACTION_ENDED']);
      expect((await last()).last).toBe(0);
      isFixed = true;
      expect(await deliver(1, eventId, 2)).toEqual([]);
      expect([(await last()).last, await statuses()]).toEqual([1, ['PROCESSED']]);
      expect(await rig.rows('SELECT 1 FROM mailroom.event')).toHaveLength(1);
    },
  );
});

describe('a rejected function', () => {
  const announces: Options = {
    rejected: async ({ data }, { tx, by, cause }) => {
      await pay(tx, `refused ${data.n} by ${by}: ${cause?.code}`);
      return { events: [happened] };
    },
  };

  test('commits its writes and events with DISCARDED, and the later events go on', async () => {
    const { deliver, reject } = counting((make) => [booking(make, announces)]);
    await begin(12);
    const [bad, next] = [newEventId(), newEventId()];
    expect(await deliver(13, bad)).toEqual(['POISON_MESSAGE']);
    expect(await deliver(14, next)).toEqual(['OUT_OF_ORDER']);
    expect(await reject(13, bad)).toEqual({ status: 'discarded' });
    expect(await reject(13, bad)).toEqual({ status: 'discarded' });
    expect(await notes()).toEqual(['refused 13 by ada: POISON_MESSAGE']);
    expect(await rig.rows('SELECT 1 FROM mailroom.event')).toHaveLength(1);
    expect(await last()).toMatchObject({ last: 13, eventId: undefined });
    expect(await deliver(14, next, 2)).toEqual([]);
  });

  test('whose COMMIT has no answer is not reported as one that changed nothing', async () => {
    const losing = vanishing(rig.database);
    const { deliver } = counting((make) => [booking(make, announces)]);
    const { reject } = counting((make) => [booking(make, announces)], losing, hurriedClock());
    await begin(12);
    const bad = newEventId();
    await deliver(13, bad);
    await expect(reject(13, bad)).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN' });
    losing.comeBack();
    expect(await reject(13, bad)).toEqual({ status: 'discarded' });
    expect(await notes()).toEqual(['refused 13 by ada: POISON_MESSAGE']);
  });

  test.each<[string, Options, object]>([
    [
      'that throws',
      {
        rejected: async (_event, { tx }) => {
          await pay(tx, 'no');
          throw new PoisonMessage('not like this');
        },
      },
      { status: 'refused', code: 'POISON_MESSAGE' },
    ],
    [
      'that ends its transaction',
      {
        rejected: async (_event, { tx }) => {
          await tx.query('CREATE TABLE IF NOT EXISTS mailroom.side_effect (id INT)');
          return { events: [happened] };
        },
      },
      { status: 'refused', code: 'TRANSACTION_ENDED' },
    ],
    ['that does not exist', {}, { status: 'refused', code: 'NO_REJECTED_FUNCTION' }],
  ])('%s leaves the message as it is', async (_text, options, answer) => {
    const { deliver, reject } = counting((make) => [booking(make, options)]);
    await begin(12);
    const eventId = newEventId();
    await deliver(13, eventId);
    expect(await reject(13, eventId)).toMatchObject(answer);
    expect([await notes(), (await last()).last, await statuses()]).toEqual([[], 12, ['REJECTED']]);
    expect(await rig.rows('SELECT 1 FROM mailroom.event')).toHaveLength(0);
  });
});

test('a backfill begins a sequence in its own transaction, once', async () => {
  const { database } = rig;
  const aggregate = { source: 'things', aggregateType: 'Thing', aggregateId: 'thing-1' };
  const backfill = () =>
    database.transaction(async (tx) => {
      await pay(tx, 'state');
      await seedMysqlOrder(database, tx, { consumer: 'worker', ...aggregate, last: 7 });
    });
  await backfill();
  await expect(backfill()).rejects.toMatchObject({ code: 'OUT_OF_ORDER' });
  expect([await notes(), (await last()).last]).toEqual([['state'], 7]);
  expect(await counting((make) => [booking(make)]).deliver(8)).toEqual([]);
});

test('an operator leaves the last applied sequence to a worker that is about to change it', async () => {
  await begin(4);
  const changes = mysqlInboxChanges({ database: mysql2(impatient), clock: systemClock });
  const raise = { key: KEY, sequence: 5, seen: { last: 4, exists: true } };
  await rig.database.transaction(async (tx) => {
    await tx.query('UPDATE mailroom.last_sequence SET last = 5');
    expect(await changes.raise(raise, { by: 'ada', reason: 'lost' })).toBe(false);
  });
  expect((await last()).last).toBe(5);
});
