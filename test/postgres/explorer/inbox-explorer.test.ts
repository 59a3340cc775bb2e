import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Inbox } from '../../../lambdas/runtime/consume/inbox-port.ts';
import { migratedPostgres } from '../inbox-rig.ts';
import type { StoreSide } from './explored-store.ts';
import { twoWorkers } from './inbox-world.ts';
import { postgresStore } from './postgres-store.ts';
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
  const { schedules, violation } = await explore(() => twoWorkers(postgresStore(postgres.pool)), BOUNDS);
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
  const { violation } = await explore(() => twoWorkers(postgresStore(postgres.pool), { rewrite }), FEW);
  expect(violation).toMatch(/^2 payments/);
});

test('finds an effect that is started after a check in another statement', async () => {
  const inbox = (whole: Inbox, { sql }: StoreSide): Inbox => ({
    ...whole,
    startEffect: async (call) => {
      const { message, fence } = call.claim;
      const row = await whole.read(message.eventId);
      if (row?.status !== 'PROCESSING' || row.fence !== fence || row.effects?.[call.name] !== undefined)
        return whole.startEffect(call);
      await sql.query(
        `INSERT INTO mailroom.effect (consumer, event_id, name, status, fence, run, started_at, ends_by)
          VALUES ('worker', $1::text, $2::text, 'IN_PROGRESS', $3::text, 1, clock_timestamp(), clock_timestamp())
          ON CONFLICT (consumer, event_id, name) DO UPDATE SET status = 'IN_PROGRESS', fence = excluded.fence`,
        [message.eventId, call.name, fence],
      );
      return undefined;
    },
  });
  const { violation } = await explore(() => twoWorkers(postgresStore(postgres.pool), { inbox }), FEW);
  expect(violation).toMatch(/^2 charges/);
});

test('a worker, an operator who resolves the message and one crash: either the handler pays, or the operator has', async () => {
  const { schedules, violation } = await explore(
    () => twoWorkers(postgresStore(postgres.pool), { operator: true }),
    BOUNDS,
  );
  expect(violation).toBeUndefined();
  expect(schedules).toBeGreaterThan(200);
});

/** The clauses of a decision, as its statement has them. */
const EFFECTS_AS_READ = /coalesce\(\(SELECT pg_catalog\.jsonb_object_agg[\s\S]+?= (\$\d+::text)::jsonb/;

test.each([
  ['a decision that does not require the effects as read', EFFECTS_AS_READ, '$1 IS NOT NULL'],
  [
    'a decision that does not require the state as read',
    /\(i\.status = 'PROCESSING'\) AND i\.fence = (\$\d+::text) AND round[\s\S]+? = (\$\d+::float8) AND coalesce[\s\S]+? = (\$\d+::text)::jsonb/,
    '$1 IS NOT NULL AND $2 IS NOT NULL AND $3 IS NOT NULL',
  ],
])('finds %s', async (_name, clause, replacement) => {
  let found = 0;
  const rewrite = (text: string) => {
    if (!text.includes('resolved_by =')) return text;
    if (clause.test(text)) found += 1;
    return text.replace(clause, replacement);
  };
  const { violation } = await explore(
    () => twoWorkers(postgresStore(postgres.pool), { operator: true, rewrite }),
    BOUNDS,
  );
  expect(found).toBeGreaterThan(0);
  expect(violation).toMatch(/^resolved, with/);
});
