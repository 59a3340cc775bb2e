import { describe, expect, test } from 'vitest';
import type { Settlement } from '../../../../lambdas/runtime/inbox/settle-message.ts';
import { discardMessage, resolveMessage } from '../../../../lambdas/runtime/operations/message-operations.ts';
import { seedSequence, skipSequence } from '../../../../lambdas/runtime/operations/order-operations.ts';
import { orderSeed } from '../../../../lambdas/runtime/store/dynamo/order-seed.ts';
import { mintEventId } from '../../../../lambdas/runtime/store/event-id.ts';
import { inboxKey, lastKey, rejectedKey } from '../../../../lambdas/runtime/store/keys.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import { rig } from '../../../support/runtime-rig.ts';
import { staleReads } from '../../../support/stale-reads.ts';

const of = { source: 'things', consumer: 'worker', aggregateType: 'Thing', aggregateId: '1' };
const key = lastKey({ ...of, group: 'strict' });
const note = { by: 'ada', reason: 'lost' };

/** A table with a last number, and an operator. */
async function desk(last?: number) {
  const parts = rig();
  const { memory, clock } = parts;
  const setLast = (to: number) =>
    memory.write({ Put: { Item: { ...key, last: to, at: 0, schema: 1, eventId: 'applied' } } });
  if (last !== undefined) await setLast(last);
  const eventId = mintEventId(clock.now(), 2);
  const settlement = (mode: 'strict' | 'latest', sequence: number): Settlement => ({
    ...{ ...note, consumer: 'worker', eventId },
    order: { key: key.PK, mode, sequence },
  });
  return {
    ...parts,
    deps: { table: memory as Table, clock },
    setLast,
    eventId,
    settlement,
    last: () => memory.item(key),
    row: () => memory.item(inboxKey('worker', eventId)),
    operations: () => memory.items().filter(({ PK }) => String(PK).startsWith('OPERATIONS#')),
  };
}

describe('skipSequence', () => {
  test.each([
    [undefined, 1, 'changed', 1],
    [4, 5, 'changed', 5],
    [5, 5, 'refused', 5],
    [3, 5, 'refused', 3],
  ] as const)('from %o to %i is %s', async (from, sequence, status, last) => {
    const { deps, operations, last: row } = await desk(from);
    expect(await skipSequence(deps, { key: key.PK, sequence }, note)).toEqual({ status, last });
    expect(row()?.last).toBe(last);
    expect(row()?.eventId).toBe(status === 'changed' ? undefined : 'applied');
    const subject = `${key.PK} ${sequence}`;
    expect(operations()).toMatchObject(
      status === 'changed' ? [{ ...note, command: 'order skip', subject }] : [],
    );
  });

  test('reads the last number strongly consistently', async () => {
    const { deps, memory } = await desk(4);
    const place = { key: key.PK, sequence: 5 };
    const changed = { status: 'changed', last: 5 };
    expect(await skipSequence({ ...deps, table: staleReads(memory) }, place, note)).toEqual(changed);
  });

  test('is refused if the event is applied between the read and the write', async () => {
    const { deps, setLast } = await desk(4);
    const table: Table = {
      ...deps.table,
      transact: async (actions, token) => {
        await setLast(5);
        return deps.table.transact(actions, token);
      },
    };
    const result = await skipSequence({ ...deps, table }, { key: key.PK, sequence: 5 }, note);
    expect(result).toEqual({ status: 'refused', last: 5 });
  });
});

test.each([
  [undefined, 'changed', 7],
  [2, 'changed', 7],
  [6, 'changed', 7],
  [7, 'refused', 7],
  [9, 'refused', 9],
] as const)('seedSequence of 7 after %o is %s', async (from, status, last) => {
  const { deps, last: row } = await desk(from);
  expect(await seedSequence(deps, { key: key.PK, sequence: 7 }, note)).toEqual({ status, last });
  expect(row()?.last).toBe(last);
});

describe('orderSeed', () => {
  const Item = { PK: 'STATE#1', SK: 'STATE' };
  const withValues = (values: object) => (seed: { readonly ExpressionAttributeValues?: object }) => ({
    ...seed,
    ExpressionAttributeValues: { ...seed.ExpressionAttributeValues, ...values },
  });

  test('begins a sequence in the transaction of a backfill, once', async () => {
    const { outbox, last } = await desk();
    const commit = () =>
      outbox.commit({ writes: [{ Put: { Item } }, orderSeed({ ...of, last: 7 })], events: [] });
    await commit();
    expect(last()).toEqual({ ...key, last: 7, at: expect.any(Number), schema: 1 });
    await expect(commit()).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });
  });

  test('may name the table', async () => {
    const { outbox, last, table } = await desk();
    const { Update } = orderSeed({ ...of, last: 7 });
    await outbox.commit({
      writes: [{ Put: { Item } }, { Update: { ...Update, TableName: table.name } as never }],
    });
    expect(last()).toMatchObject({ last: 7 });
  });

  test('has the group of a latest order', () => {
    const { Update } = orderSeed({ ...of, group: 'prices', last: 1 });
    expect(Update?.Key).toEqual(lastKey({ ...of, group: 'prices' }));
  });

  test.each([[0], [1.5], ['1' as never]])('refuses %o', (last) => {
    expect(() => orderSeed({ ...of, last })).toThrow(expect.objectContaining({ code: 'BAD_RANGE' }));
  });

  test.each([
    ['an update on another condition', (seed: object) => ({ ...seed, ConditionExpression: '#last < :last' })],
    ['an update that sets more', (seed: object) => ({ ...seed, UpdateExpression: 'SET #last = :last' })],
    ['a number below 1', withValues({ ':last': 0 })],
    ['a number that is not whole', withValues({ ':last': 1.5 })],
  ])('is the only write of a last number that a commit takes: not %s', async (_what, change) => {
    const { outbox } = await desk();
    const Update = change(orderSeed({ ...of, last: 7 }).Update as object) as never;
    await expect(outbox.commit({ writes: [{ Update }], events: [] })).rejects.toMatchObject({
      code: 'BAD_WRITE',
      message: expect.stringContaining('"LAST#"'),
    });
  });
});

describe('a message of a strict order', () => {
  test.each([
    ['resolved', resolveMessage, undefined, 1, 1],
    ['resolved', resolveMessage, 4, 5, 5],
    ['discarded', discardMessage, 4, 5, 5],
    ['resolved', resolveMessage, 8, 5, 8],
    ['discarded', discardMessage, 5, 5, 5],
  ] as const)('that is %s is passed over: %o, %o to %i', async (status, settle, from, sequence, last) => {
    const { deps, settlement, last: row } = await desk(from);
    expect(await settle(deps, settlement('strict', sequence))).toEqual({ status });
    expect(row()?.last).toBe(last);
  });

  test.each([resolveMessage, discardMessage])('is not settled before its predecessor', async (settle) => {
    const { deps, settlement, row, last } = await desk(2);
    expect(await settle(deps, settlement('strict', 5))).toEqual({ status: 'out-of-order', missing: 3 });
    expect(row()).toBeUndefined();
    expect(last()).toMatchObject({ last: 2, eventId: 'applied' });
  });

  test('has the place of its row, not the one that is given, also by force', async () => {
    const { deps, settlement, memory, eventId, last } = await desk(2);
    const order = { key: key.PK, mode: 'strict', sequence: 3 };
    const row = {
      ...inboxKey('worker', eventId),
      schema: 1,
      status: 'FAILED',
      fence: 'f',
      attempts: 1,
      order,
    };
    await memory.write({ Put: { Item: row } });
    const forced = { ...settlement('strict', 9), force: true, effectsChecked: true };
    expect(await resolveMessage(deps, forced)).toEqual({ status: 'resolved' });
    expect(last()).toMatchObject({ last: 3 });
  });

  test.each([
    ['a key that is not text', { key: 7, sequence: 3 }],
    ['a number that is not whole', { key: key.PK, sequence: '3' }],
  ])('has the place that is given if that of its row, changed by hand, has %s', async (_what, order) => {
    const { deps, settlement, memory, eventId, last } = await desk(4);
    const row = {
      ...inboxKey('worker', eventId),
      schema: 1,
      status: 'FAILED',
      fence: 'f',
      attempts: 1,
      order,
    };
    await memory.write({ Put: { Item: row as never } });
    const forced = { ...settlement('strict', 5), force: true, effectsChecked: true };
    expect(await resolveMessage(deps, forced)).toEqual({ status: 'resolved' });
    expect(last()).toMatchObject({ last: 5 });
  });

  test('needs a check of its effects, whatever its predecessor is', async () => {
    const { deps, settlement, memory, eventId } = await desk(2);
    const charge = { status: 'COMPLETED', fence: 'f', run: 1, endsBy: 0, startedAt: 0 };
    const row = { ...inboxKey('worker', eventId), schema: 1, status: 'FAILED', fence: 'f', attempts: 1 };
    await memory.write({ Put: { Item: { ...row, effects: { charge } } } });
    const unchecked = { status: 'effects-unchecked', effects: [{ effect: 'charge' }] };
    expect(await resolveMessage(deps, settlement('strict', 5))).toMatchObject(unchecked);
    const checked = { ...settlement('strict', 5), effectsChecked: true };
    expect(await resolveMessage(deps, checked)).toEqual({ status: 'out-of-order', missing: 3 });
  });

  test.each([
    ['strict', true, 3],
    ['strict', false, 4],
    ['strict', undefined, 3],
    ['latest', true, 4],
    ['latest', false, 3],
    ['latest', undefined, 3],
  ] as const)(
    'whose row has a %s place, at a consumer that is strict: %o, is resolved as number %i',
    async (mode, isStrict, after) => {
      const { deps, settlement, memory, eventId } = await desk();
      const lastOf = (group: string) => lastKey({ ...of, group });
      const placeIn = (group: string) => ({ key: lastOf(group).PK, mode });
      const order = { ...placeIn('of the row'), sequence: 3 };
      const row = {
        ...inboxKey('worker', eventId),
        schema: 1,
        status: 'FAILED',
        fence: 'f',
        attempts: 1,
        order,
      };
      await memory.write({ Put: { Item: row } });
      for (const [group, last] of [
        ['of the row', 2],
        ['given', 3],
      ] as const)
        await memory.write({ Put: { Item: { ...lastOf(group), last, at: 0, schema: 1 } } });
      const given = { ...placeIn('given'), sequence: 4 };
      expect(await resolveMessage(deps, { ...settlement('strict', 9), order: given, isStrict })).toEqual({
        status: 'resolved',
      });
      const raised = [memory.item(lastOf('of the row'))?.last, memory.item(lastOf('given'))?.last];
      expect(raised).toEqual(after === 3 ? [3, 3] : [2, 4]);
    },
  );

  test('keeps its number for the event that takes its place', async () => {
    const { deps, settlement, last } = await desk(4);
    await discardMessage(deps, { ...settlement('strict', 5), replacedBy: mintEventId(1, 8) });
    expect(last()).toMatchObject({ last: 4, eventId: 'applied' });
  });

  test('is read again if its number is applied between the read and the write', async () => {
    const { deps, settlement, setLast, last } = await desk(4);
    let tries = 0;
    const table: Table = {
      ...deps.table,
      transact: async (actions, token) => {
        tries += 1;
        if (tries === 1) await setLast(5);
        return deps.table.transact(actions, token);
      },
    };
    expect(await resolveMessage({ ...deps, table }, settlement('strict', 5))).toEqual({ status: 'resolved' });
    expect(last()).toMatchObject({ last: 5, eventId: 'applied' });
  });

  test('with a pointer but without its row is not passed over unchecked', async () => {
    const { deps, settlement, memory, eventId, last } = await desk(4);
    await memory.write({ Put: { Item: { ...rejectedKey('worker', eventId), schema: 1 } } });
    expect(await resolveMessage(deps, settlement('strict', 5))).toEqual({ status: 'row-deleted' });
    expect(last()).toMatchObject({ last: 4 });
  });
});

test.each([
  ['resolved', resolveMessage, 4, 9, 9],
  ['resolved', resolveMessage, undefined, 9, 9],
  ['resolved', resolveMessage, 12, 9, 12],
  ['discarded', discardMessage, 4, 9, 4],
] as const)('a message of latest that is %s: %o, %o to %i', async (status, settle, from, sequence, last) => {
  const { deps, settlement, last: row } = await desk(from);
  expect(await settle(deps, settlement('latest', sequence))).toEqual({ status });
  expect(row()?.last).toBe(last);
});
