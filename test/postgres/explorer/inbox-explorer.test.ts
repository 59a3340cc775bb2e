import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Inbox } from '../../../lambdas/runtime/consume/inbox-port.ts';
import type { PgClient } from '../../../lambdas/runtime/postgres/databases.ts';
import type { Database } from '../../../lambdas/runtime/postgres/sql.ts';
import { migratedPostgres } from '../inbox-rig.ts';
import { twoWorkers } from './inbox-world.ts';
import { explore } from './schedules.ts';

let postgres: Awaited<ReturnType<typeof migratedPostgres>>;

beforeAll(async () => {
  postgres = await migratedPostgres('inbox-explorer', {}, { fsync: 'off', synchronous_commit: 'off' });
});

afterAll(() => postgres.close());

const BOUNDS = { switches: 3, crashes: 1, passes: 1 };

/** Enough to find each hole. */
const FEW = { ...BOUNDS, switches: 2 };

test('two workers and one crash: one payment, and one charge unless its worker crashed, in every schedule', async () => {
  const { schedules, violation } = await explore(postgres.pool, () => twoWorkers(postgres.pool), BOUNDS);
  expect(violation).toBeUndefined();
  expect(schedules).toBeGreaterThan(500);
});

test('finds a commit without its condition', async () => {
  const rewrite = (text: string) => {
    if (!text.startsWith('UPDATE mailroom.inbox') || !text.includes('pg_current_xact_id()')) return text;
    const unconditional = text.replace(
      /\(i\.status = 'PROCESSING'\) AND i\.fence = (\$\d+::text)/,
      '$1 IS NOT NULL',
    );
    expect(unconditional).not.toBe(text);
    return unconditional;
  };
  const { violation } = await explore(postgres.pool, () => twoWorkers(postgres.pool, { rewrite }), FEW);
  expect(violation).toMatch(/^2 payments/);
});

test('finds an effect that is started after a check in another statement', async () => {
  const inbox = (whole: Inbox, database: Database<PgClient>): Inbox => ({
    ...whole,
    startEffect: async (call) => {
      const { message, fence } = call.claim;
      const row = await whole.read(message.eventId);
      if (row?.status !== 'PROCESSING' || row.fence !== fence || row.effects?.[call.name] !== undefined)
        return whole.startEffect(call);
      await database.query(
        `INSERT INTO mailroom.effect (consumer, event_id, name, status, fence, run, started_at, ends_by)
          VALUES ('worker', $1::text, $2::text, 'IN_PROGRESS', $3::text, 1, clock_timestamp(), clock_timestamp())
          ON CONFLICT (consumer, event_id, name) DO UPDATE SET status = 'IN_PROGRESS', fence = excluded.fence`,
        [message.eventId, call.name, fence],
      );
      return undefined;
    },
  });
  const { violation } = await explore(postgres.pool, () => twoWorkers(postgres.pool, { inbox }), FEW);
  expect(violation).toMatch(/^2 charges/);
});
