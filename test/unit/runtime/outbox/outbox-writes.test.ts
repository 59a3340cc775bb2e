import { expect, test } from 'vitest';
import { MailroomError } from '../../../../lambdas/runtime/base/errors.ts';
import { type PendingRow, pendingRow } from '../../../../lambdas/runtime/outbox/pending-row.ts';
import { relayContext } from '../../../../lambdas/runtime/relay/relay-context.ts';
import { discardDead } from '../../../../lambdas/runtime/store/dynamo/outbox-operator.ts';
import {
  claimEvents,
  failEvent,
  markPublished,
  type OutboxContext,
  releaseEvents,
} from '../../../../lambdas/runtime/store/dynamo/outbox-writes.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import { relayConfig, rig, runThrough } from '../../../support/runtime-rig.ts';

const ERROR = new MailroomError('Odd', 'odd');

/** Outbox rows as the sweep has read them, and their transitions. */
async function readRows(events: number, change: (table: Table) => Partial<Table> = () => ({})) {
  const parts = rig();
  const { clock, memory, outbox, happened } = parts;
  await outbox.commit({ events: Array.from({ length: events }, (_, n) => happened(n)) });
  const table = { ...memory, ...change(memory) };
  const context = relayContext({ ...parts, table, config: relayConfig }, 'sweep', 1);
  const rows = memory.items().flatMap((item) => pendingRow(item) ?? []);
  return {
    ...parts,
    context,
    fail: (row: PendingRow, refused: boolean) => failEvent(context, row, ERROR, refused),
    rows,
    /** Changes a row after the sweep has read it. */
    set: ({ key }: PendingRow, set: { status: string } | { leaseUntil: number }) =>
      memory.updateEach([{ key, set, when: { schema: 1 } }]),
    mark: (some: readonly PendingRow[]) => runThrough(clock, markPublished(context, some)),
  };
}

type Transition = (context: OutboxContext, row: PendingRow) => Promise<unknown>;

const TRANSITIONS: readonly (readonly [string, Transition])[] = [
  ['a claim', (context, row) => claimEvents(context, [row])],
  ['a failure', (context, row) => failEvent(context, row, ERROR, false)],
  ['DEAD', (context, row) => failEvent(context, row, ERROR, true)],
  ['a release', (context, row) => releaseEvents(context, [{ row, leaseUntil: 1 }])],
];

test.each(TRANSITIONS)(
  '%s changes nothing on a row that was claimed since it was read',
  async (_what, transition) => {
    const { rows, set, memory, context } = await readRows(1);
    const [row] = rows as [PendingRow];
    await set(row, { leaseUntil: row.leaseUntil + 1 });
    const before = memory.items();
    await transition(context, row);
    expect(memory.items()).toEqual(before);
  },
);

test.each(TRANSITIONS)(
  '%s changes nothing on a row that was published since it was read',
  async (_what, transition) => {
    const { rows, set, memory, context } = await readRows(1);
    const [row] = rows as [PendingRow];
    await set(row, { status: 'PUBLISHED' });
    const before = memory.items();
    await transition(context, row);
    expect(memory.items()).toEqual(before);
  },
);

test.each(TRANSITIONS)('%s sets no expiry', async (_what, transition) => {
  const { rows, memory, context } = await readRows(1);
  const [row] = rows as [PendingRow];
  await transition(context, row);
  expect(memory.items().filter((item) => 'expiresAt' in item)).toEqual([]);
});

test('an event is DEAD once the last of its attempts has failed, and not before', async () => {
  const { rows, memory, fail } = await readRows(1);
  const [row] = rows as [PendingRow];
  for (const attempts of [0, 1, 2]) {
    const [current = row] = memory.items().flatMap((item) => pendingRow(item) ?? []);
    expect(current.attempts).toBe(attempts);
    await fail(current, false);
  }
  expect(memory.item(row.key)).toMatchObject({ status: 'DEAD', attempts: 3 });
});

test('a failed attempt counts neither as refused nor as DEAD, and a refused event counts once as each', async () => {
  const { rows, fail, telemetry } = await readRows(2);
  const [failing, refused] = rows as [PendingRow, PendingRow];
  const counted = () => [telemetry.counted('EventsRefused'), telemetry.counted('EventsDead')];
  await fail(failing, false);
  expect(counted()).toEqual([0, 0]);
  await fail(refused, true);
  expect(counted()).toEqual([1, 1]);
});

test('an event whose row was published in the meantime does not count as DEAD', async () => {
  const { rows, fail, set, telemetry } = await readRows(1);
  const [row] = rows as [PendingRow];
  await set(row, { status: 'PUBLISHED' });
  await fail(row, true);
  expect(telemetry.counted('EventsDead')).toBe(0);
});

test('the publish latency of each event starts at its commit', async () => {
  const { rows, mark, clock, telemetry } = await readRows(2);
  await clock.advance(1_500);
  await mark(rows);
  expect(telemetry.durations('PublishLatency')).toEqual([1_500, 1_500]);
});

test('only the marks that failed are retried', async () => {
  const calls: number[] = [];
  const { rows, mark, memory } = await readRows(2, ({ updateEach }) => ({
    updateEach: async (updates) => {
      calls.push(updates.length);
      if (calls.length > 1) return updateEach(updates);
      return [
        ...(await updateEach(updates.slice(0, 1))),
        { ok: false, refused: false, code: 'X', message: 'x' },
      ];
    },
  }));
  expect(await mark(rows)).toEqual([]);
  expect(calls).toEqual([2, 1]);
  expect(memory.items()).toMatchObject([{ status: 'PUBLISHED' }, { status: 'PUBLISHED' }]);
});

test.each(['PUBLISHED', 'DISCARDED', 'CANCELLED'])(
  'an event that is %s before its mark is done: no transaction follows, and no error is logged',
  async (status) => {
    const transactions: unknown[] = [];
    const { rows, mark, set, memory, telemetry } = await readRows(1, ({ transact }) => ({
      transact: async (...call) => {
        transactions.push(call);
        return transact(...call);
      },
    }));
    const [row] = rows as [PendingRow];
    await set(row, { status });
    expect(await mark(rows)).toEqual([]);
    expect(transactions).toEqual([]);
    expect(telemetry.lines().filter(({ level }) => level === 'error')).toEqual([]);
    expect(memory.item(row.key)).toMatchObject({ status });
  },
);

test('an event that is discarded right before its mark stays DISCARDED', async () => {
  const { rows, mark, memory, fail, clock } = await readRows(1, (table) => ({
    transact: async (actions, token) => {
      if (JSON.stringify(actions).includes('PUBLISHED'))
        await discardDead({ table, clock }, rows[0]?.eventId ?? '', { by: 'ada', reason: 'a test' });
      return table.transact(actions, token);
    },
  }));
  const [row] = rows as [PendingRow];
  await fail(row, true);
  expect(await mark(rows)).toEqual([]);
  expect(memory.item(row.key)).toMatchObject({ status: 'DISCARDED' });
});

test('a DEAD event that was published after all is reported when it cannot be marked', async () => {
  const { rows, mark, memory, fail } = await readRows(1, ({ transact }) => ({
    transact: async (actions, token) => {
      if (JSON.stringify(actions).includes('PUBLISHED'))
        throw Object.assign(new Error('slow down'), { name: 'ThrottlingException' });
      return transact(actions, token);
    },
  }));
  const [row] = rows as [PendingRow];
  await fail(row, true);
  expect(await mark(rows)).toEqual([row]);
  expect(memory.item(row.key)).toMatchObject({ status: 'DEAD' });
});
