import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY_MS } from '../../lambdas/runtime/base/units.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import { deleteExpiredMessages } from '../../lambdas/runtime/store/postgres/inbox-retention.ts';
import { inboxContract } from './inbox-contract.ts';
import { inboxOrderContract } from './inbox-order-contract.ts';
import { dynamoTested, migratedPostgres, postgresTested } from './inbox-rig.ts';

let postgres: Awaited<ReturnType<typeof migratedPostgres>>;

beforeAll(async () => {
  postgres = await migratedPostgres('inbox');
});

afterAll(() => postgres.close());

inboxContract('DynamoDB', dynamoTested);
inboxOrderContract('DynamoDB', dynamoTested);

inboxContract('PostgreSQL', () => postgresTested(postgres.database));
inboxOrderContract('PostgreSQL', () => postgresTested(postgres.database));

test('PostgreSQL: a processed message and its effects are deleted a day after their retention, a failed one never', async () => {
  const { database } = postgres;
  const { inbox, clock, pass } = await postgresTested(database);
  const claimed = async () => {
    const message = { eventId: mintEventId(clock.now(), 2), messageId: 'first' };
    const options = { alone: true, firstReceive: true, endsBy: clock.now() + 60_000 };
    const result = await inbox.claim(message, options);
    if (result.status !== 'claimed') throw new Error(result.status);
    await inbox.startEffect({ claim: result.claim, name: 'charge', run: 1 });
    return result.claim;
  };
  await inbox.complete(await claimed(), undefined);
  await inbox.fail(await claimed(), new Error('no'), clock.now(), {});
  await pass(36 * DAY_MS - 600_000);
  expect(await deleteExpiredMessages(database)).toBe(0);
  await pass(600_000);
  expect(await deleteExpiredMessages(database)).toBe(1);
  expect(await deleteExpiredMessages(database)).toBe(0);
  const { rows } = await database.query(
    'SELECT i.status FROM mailroom.inbox i JOIN mailroom.effect e USING (consumer, event_id)',
  );
  expect(rows).toEqual([{ status: 'FAILED' }]);
});
