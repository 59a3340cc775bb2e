import { afterAll, beforeAll, expect, test } from 'vitest';
import { migratedPostgres } from '../inbox-rig.ts';
import { twoEvents } from './order-world.ts';
import { postgresStore } from './postgres-store.ts';
import { explore } from './schedules.ts';

let postgres: Awaited<ReturnType<typeof migratedPostgres>>;

beforeAll(async () => {
  postgres = await migratedPostgres('order-explorer', {}, { fsync: 'off', synchronous_commit: 'off' });
});

afterAll(() => postgres.close());

const BOUNDS = { switches: 2, crashes: 1, passes: 0 };

/** Enough to find each hole. */
const FEW = { switches: 2, crashes: 0, passes: 0 };

test.each([
  ['latest', false],
  ['latest', true],
  ['strict', true],
] as const)(
  'two events of an aggregate in the order %s, of which the sequence has begun: %s, and one crash: each handler reads the state of the event before it',
  async (mode, begun) => {
    const { schedules, violation } = await explore(
      () => twoEvents(postgresStore(postgres.pool), { mode, begun }),
      BOUNDS,
    );
    expect(violation).toBeUndefined();
    expect(schedules).toBeGreaterThan(20);
  },
);

test.each([
  [
    'a number that is raised from another one than was read',
    true,
    / AND last = (\$\d+::bigint)/,
    ' AND $1 IS NOT NULL',
  ],
  [
    'a sequence that begins twice',
    false,
    'DO NOTHING RETURNING 1',
    'DO UPDATE SET last = excluded.last, event_id = excluded.event_id RETURNING 1',
  ],
] as const)('finds %s', async (_name, begun, clause, replacement) => {
  let found = 0;
  const rewrite = (text: string) => {
    if (!text.includes('mailroom.last_sequence')) return text;
    const changed = text.replace(clause, replacement);
    if (changed !== text) found += 1;
    return changed;
  };
  const { violation } = await explore(
    () => twoEvents(postgresStore(postgres.pool), { mode: 'latest', begun, rewrite }),
    FEW,
  );
  expect(found).toBeGreaterThan(0);
  expect(violation).toMatch(/^states /);
});

test('finds a number that is not raised in the transaction of the message', async () => {
  const rewrite = (text: string) =>
    text.startsWith('UPDATE mailroom.last_sequence')
      ? 'SELECT 1 WHERE $1::text <> $2::text AND $3::bigint > $5::bigint AND ($4::text IS NULL OR true)'
      : text;
  const { violation } = await explore(
    () => twoEvents(postgresStore(postgres.pool), { mode: 'latest', begun: true, rewrite }),
    FEW,
  );
  expect(violation).toBeDefined();
});
