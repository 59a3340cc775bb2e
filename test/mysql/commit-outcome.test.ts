import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import { createMysqlOutbox } from '../../lambdas/runtime/mysql/mysql-outbox.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { type CuttingProxy, startCuttingProxy } from '../postgres/support/cutting-proxy.ts';
import { PRODUCER, placed } from '../postgres/support/rig.ts';
import { type Rig, startRig } from './support/rig.ts';

let rig: Rig;
let proxy: CuttingProxy;

beforeAll(async () => {
  rig = await startRig('mysql-commit');
  await rig.pool.query('CREATE DATABASE shop');
  await rig.pool.query('CREATE TABLE shop.orders (id INT PRIMARY KEY) ENGINE=InnoDB');
  proxy = await startCuttingProxy(rig.server.port);
});
beforeEach(async () => {
  await rig.clear();
  await rig.pool.query('DELETE FROM shop.orders');
});
afterAll(async () => {
  await proxy.close();
  await rig.close();
});

test.each([
  ['after', true, true],
  ['before', false, true],
  ['after', true, false],
  ['before', false, false],
] as const)(
  'the answer to COMMIT is lost, %s the server has it: committed %s, with events %s',
  async (where, isCommitted, hasEvents) => {
    const pool = rig.poolOf({ port: proxy.port, connectionLimit: 4 });
    const outbox = createMysqlOutbox({
      config: PRODUCER,
      database: mysql2(pool),
      telemetry: memoryTelemetry(),
    });
    let runs = 0;
    proxy.cutNextCommit(where);
    const committed = outbox.commit(async (tx) => {
      runs += 1;
      await tx.query('INSERT INTO shop.orders VALUES (1)');
      return hasEvents ? [placed(1)] : [];
    });
    const result = await committed.catch((error: unknown) => error);
    if (isCommitted) expect(result).toMatchObject(hasEvents ? [{ type: 'Placed' }] : []);
    else expect(result).toBeInstanceOf(Error);
    expect(runs).toBe(1);
    expect(await rig.rows('SELECT id FROM shop.orders')).toHaveLength(isCommitted ? 1 : 0);
    expect(await rig.rows('SELECT 1 FROM mailroom.pending')).toHaveLength(isCommitted && hasEvents ? 1 : 0);
    await pool.end();
  },
);
