import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY_MS } from '../../lambdas/runtime/base/units.ts';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import { deleteExpiredMessages } from '../../lambdas/runtime/store/mysql/inbox-retention.ts';
import { inboxContract } from '../postgres/inbox-contract.ts';
import { inboxOrderContract } from '../postgres/inbox-order-contract.ts';
import { FUNCTION_MS } from '../postgres/inbox-rig.ts';
import { inboxOn, mysqlTested } from './inbox-rig.ts';
import { type Rig, startRig } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('mysql-inbox');
});

afterAll(() => rig.close());

inboxContract('MariaDB', () => mysqlTested(rig));
inboxOrderContract('MariaDB', () => mysqlTested(rig));

test('MariaDB: 200 races of five claims have one winner each', async () => {
  const { clock, worker } = await mysqlTested(rig);
  const workers = [1, 2, 3, 4, 5].map(() => worker());
  const options = { alone: true, firstReceive: false, endsBy: clock.now() + FUNCTION_MS };
  const winners: number[] = [];
  for (let race = 0; race < 200; race += 1) {
    const message = { eventId: mintEventId(clock.now(), 2), messageId: 'first' };
    const results = await Promise.all(workers.map((inbox) => inbox.claim(message, options)));
    winners.push(results.filter(({ status }) => status === 'claimed').length);
  }
  expect(winners).toEqual(Array.from({ length: 200 }, () => 1));
});

test('MariaDB: a processed message and its effects are deleted a day after their retention, a failed one never', async () => {
  const { inbox, clock, pass } = await mysqlTested(rig);
  const claimed = async () => {
    const message = { eventId: mintEventId(clock.now(), 2), messageId: 'first' };
    const options = { alone: true, firstReceive: true, endsBy: clock.now() + 60_000 };
    const result = await inbox.claim(message, options);
    if (result.status !== 'claimed') throw new Error(result.status);
    await inbox.startEffect({ claim: result.claim, name: 'charge', run: 1 });
    return result.claim;
  };
  const expired = () => rig.database.transaction((tx) => deleteExpiredMessages(rig.database.in(tx)));
  await inbox.complete(await claimed(), undefined);
  await inbox.fail(await claimed(), new Error('no'), clock.now(), {});
  await pass(36 * DAY_MS - 600_000);
  expect(await expired()).toBe(0);
  await pass(600_000);
  expect(await expired()).toBe(1);
  expect(await expired()).toBe(0);
  const left = await rig.rows(
    'SELECT i.status FROM mailroom.inbox i JOIN mailroom.effect e USING (consumer, event_id)',
  );
  expect(left).toEqual([{ status: 'FAILED' }]);
});

test('MariaDB: every text is read as it was written, with any character set of the connection', async () => {
  await mysqlTested(rig);
  const pool = rig.poolOf({ charset: 'latin1_swedish_ci' });
  const hostile = 'Zoë 💥 \\\' " \u0000 %_ ?,"first"';
  const consumer = 'é'.repeat(256);
  const inbox = inboxOn(mysql2(pool), undefined, { consumer });
  const { clock } = inbox.rules;
  const message = { eventId: mintEventId(clock.now(), 2), messageId: hostile, type: 't'.repeat(400) };
  const options = { alone: true, firstReceive: true, endsBy: clock.now() + FUNCTION_MS };
  const result = await inbox.claim(message, options);
  if (result.status !== 'claimed') throw new Error(result.status);
  const call = { claim: result.claim, name: 'x'.repeat(64), run: 1 };
  await inbox.startEffect(call);
  await inbox.finishEffect(call, { status: 'COMPLETED', result: hostile });
  await inbox.reject(result.claim, new Error(hostile), {});
  expect(await inbox.read(message.eventId)).toMatchObject({
    status: 'REJECTED',
    type: 't'.repeat(128),
    lastError: expect.stringContaining(hostile),
    rejectedIds: new Set([hostile]),
    effects: { [call.name]: { result: hostile } },
  });
  expect(await inbox.claim({ ...message, messageId: 'first' }, options)).toMatchObject({ status: 'claimed' });
  await pool.end();
});
