import type { PoolConnection } from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import { createMysqlConsumer } from '../../lambdas/runtime/mysql/mysql-consumer.ts';
import { seedMysqlOrder } from '../../lambdas/runtime/mysql/mysql-order-seed.ts';
import { mysqlInboxChanges } from '../../lambdas/runtime/store/mysql/inbox-operator.ts';
import { raiseLast, readLastSequence } from '../../lambdas/runtime/store/mysql/last-sequence.ts';
import { orderedConsumerContract } from '../contract/ordered-consumer-contract.ts';
import { Counted, happened, type OrderedDatabase, orderedConsumers } from '../contract/ordered-consumers.ts';
import { newEventId } from '../postgres/consumer-parts.ts';
import { PAYMENT, testOutbox } from './inbox-rig.ts';
import { type Rig, startRig } from './support/rig.ts';

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

const ORDERED: OrderedDatabase<PoolConnection> = {
  database: () => rig.database,
  operated: () => mysql2(impatient),
  outbox: testOutbox,
  createConsumer: createMysqlConsumer,
  changesIn: (database, clock) => mysqlInboxChanges({ database, clock }),
  seedOrder: seedMysqlOrder,
  raiseLast,
  readLastSequence,
  pay: (tx, note) => tx.query("INSERT INTO mailroom.payment (event_id, note) VALUES ('paid', ?)", [note]),
  rows: (text) => rig.rows(text),
  payments: 'mailroom.payment',
  spoils: [
    'that ends its transaction',
    (tx) => tx.query('CREATE TABLE IF NOT EXISTS mailroom.side_effect (id INT)'),
    { code: 'TRANSACTION_ENDED' },
  ],
};
const { counting, booking, begin, last, notes, statuses } = orderedConsumers(ORDERED);

orderedConsumerContract(ORDERED);

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
