import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Inbox } from '../../../lambdas/runtime/consume/inbox-port.ts';
import { KEY, NOW, textParameter } from '../../../lambdas/runtime/store/mysql/expressions.ts';
import type { ExploredStore, StoreSide } from '../../postgres/explorer/explored-store.ts';
import { twoWorkers } from '../../postgres/explorer/inbox-world.ts';
import { twoEvents } from '../../postgres/explorer/order-world.ts';
import { explore } from '../../postgres/explorer/schedules.ts';
import { PAYMENT } from '../inbox-rig.ts';
import { type Rig, startRig } from '../support/rig.ts';
import { FAST, mysqlStore } from './mysql-store.ts';

let rig: Rig;
let store: ExploredStore;

beforeAll(async () => {
  rig = await startRig('mysql-inbox-explorer', FAST);
  await rig.pool.query(PAYMENT);
  store = mysqlStore(rig);
});
afterAll(() => rig.close());

/** Statements take three times as many steps as those of PostgreSQL, so one switch, or one crash, is explored at each of them. */
const BOUNDS = { switches: 1, crashes: 1, passes: 1 };

/** Enough to find each hole. */
const FEW = { ...BOUNDS, crashes: 0 };

/** Takes a clause away, and shows that a statement had it. */
function without(clause: string, replacement: string) {
  let found = 0;
  const rewrite = (text: string) => {
    if (text.includes(clause)) found += 1;
    return text.replaceAll(clause, replacement);
  };
  return { rewrite, isFound: () => found > 0 };
}

test('two workers and one crash: one payment, and one charge unless its worker crashed, in every schedule', async () => {
  const { schedules, violation } = await explore(() => twoWorkers(store), BOUNDS);
  expect(violation).toBeUndefined();
  expect(schedules).toBeGreaterThan(30);
});

test('finds a commit without its condition', async () => {
  const { rewrite, isFound } = without(
    `(i.status = 'PROCESSING') AND i.fence = ${KEY}`,
    `${KEY} IS NOT NULL`,
  );
  const { violation } = await explore(() => twoWorkers(store, { rewrite }), FEW);
  expect(isFound()).toBe(true);
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
        `REPLACE INTO mailroom.effect (consumer, event_id, name, status, fence, run, started_at, ends_by)
          VALUES ('worker', ${KEY}, 'charge', 'IN_PROGRESS', ${KEY}, 1, ${NOW}, ${NOW})`,
        [textParameter(message.eventId), textParameter(fence)],
      );
      return undefined;
    },
  });
  const { violation } = await explore(() => twoWorkers(store, { inbox }), FEW);
  expect(violation).toMatch(/^2 charges/);
});

test('a worker, an operator who resolves the message and one crash: either the handler pays, or the operator has', async () => {
  const { schedules, violation } = await explore(() => twoWorkers(store, { operator: true }), BOUNDS);
  expect(violation).toBeUndefined();
  expect(schedules).toBeGreaterThan(20);
});

const ORDER = { ...BOUNDS, passes: 0 };

test.each([
  ['latest', false],
  ['latest', true],
  ['strict', true],
] as const)(
  'two events of an aggregate in the order %s, of which the sequence has begun: %s, and one crash: each handler reads the state of the event before it',
  async (mode, begun) => {
    const { schedules, violation } = await explore(() => twoEvents(store, { mode, begun }), ORDER);
    expect(violation).toBeUndefined();
    expect(schedules).toBeGreaterThan(20);
  },
);

test.each([
  ['a number that is raised from another one than was read', true, ' AND last = ?', ' AND ? IS NOT NULL'],
  ['a number that is not locked before the handler', true, ' AND last = ? FOR UPDATE', ' AND last = ?'],
  [
    'a sequence that begins twice',
    false,
    'ON DUPLICATE KEY UPDATE last = last',
    'ON DUPLICATE KEY UPDATE last = 0',
  ],
] as const)('finds %s', async (_name, begun, clause, replacement) => {
  const { rewrite, isFound } = without(clause, replacement);
  const setting = { mode: 'latest', begun, rewrite } as const;
  const { violation } = await explore(() => twoEvents(store, setting), { ...ORDER, crashes: 0 });
  expect(isFound()).toBe(true);
  expect(violation).toMatch(/^states /);
});
