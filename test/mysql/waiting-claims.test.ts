import type { PoolConnection } from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import { createMysqlOutbox } from '../../lambdas/runtime/mysql/mysql-outbox.ts';
import { mintEventId, systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { epochMs } from '../../lambdas/runtime/store/mysql/expressions.ts';
import { mysqlTransitions } from '../../lambdas/runtime/store/mysql/relay-transitions.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { FUNCTION_MS } from '../postgres/inbox-rig.ts';
import { relayConfig } from '../postgres/support/relay-config.ts';
import { eventually, PRODUCER, placed } from '../postgres/support/rig.ts';
import { inboxOn } from './inbox-rig.ts';
import { type Rig, startRig, WAITING } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('mysql-waiting-claims');
});
beforeEach(() => rig.clear());
afterAll(() => rig.close());

/** Runs while another transaction holds the rows of a table, which ends once a statement has waited for them for a while. */
async function afterAWait<T>(table: string, run: () => Promise<T>): Promise<T> {
  const holder: PoolConnection = await rig.pool.getConnection();
  await holder.query('START TRANSACTION');
  await holder.query(`SELECT 1 FROM ${table} FOR UPDATE`);
  const result = run();
  await eventually(async () => (await rig.rows(WAITING)).length > 0 || undefined);
  await holder.query('COMMIT');
  holder.release();
  return result;
}

const endInDatabase = async (column: string, table: string) =>
  Number((await rig.rows(`SELECT ${epochMs(column)} AS ms FROM ${table}`))[0]?.ms);

test('a claim by token that has waited for a lock believes in no longer lease than the database stores', async () => {
  const { database } = rig;
  const telemetry = memoryTelemetry();
  await createMysqlOutbox({ config: PRODUCER, database, telemetry }).commit(async () => [placed(1)]);
  const parts = { config: relayConfig(), clock: systemClock, random: systemRandomBytes, telemetry };
  const relay = mysqlTransitions({ ...parts, database, claim: 'token' });
  const [claimed] = await afterAWait('mailroom.pending', () => relay.claim(1));
  expect(claimed?.leaseUntil).toBeLessThanOrEqual(await endInDatabase('due_at', 'mailroom.pending'));
});

test('a claim of a message that has waited for a lock believes in no longer lease than the database stores', async () => {
  const inbox = inboxOn(rig.database, systemClock);
  const message = { eventId: mintEventId(Date.now(), 2), messageId: 'first' };
  const options = () => ({ alone: true, firstReceive: false, endsBy: Date.now() + FUNCTION_MS });
  const first = await inbox.claim(message, options());
  if (first.status !== 'claimed') throw new Error(`The claim was refused: ${first.status}`);
  await inbox.fail(first.claim, new Error('failed'), Date.now(), {});
  const second = await afterAWait('mailroom.inbox', () => inbox.claim(message, options()));
  if (second.status !== 'claimed') throw new Error(`The claim was refused: ${second.status}`);
  expect(second.claim.leaseUntil).toBeLessThanOrEqual(await endInDatabase('lease_until', 'mailroom.inbox'));
});
