import { expect } from 'vitest';
import { cancellationOf } from '../../lambdas/runtime/store/dynamo/cancellation.ts';
import { raiseLast, readLastSequence } from '../../lambdas/runtime/store/dynamo/last-sequence.ts';
import { mintEventId, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { lastKey } from '../../lambdas/runtime/store/keys.ts';
import { type LastSequence, NOTHING_APPLIED } from '../../lambdas/runtime/store/last-sequence.ts';
import { ignoreOlder, nextVersion } from '../../lambdas/runtime/store/row-version.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';
import type { Case } from './cases.ts';

const SK = 'ITEM';

/** Single reads and writes. */
export const writeCases: readonly Case<Table>[] = [
  [
    'get gives what was put, and undefined where there is nothing',
    async (table) => {
      const key = { PK: 'WRITE#1', SK };
      expect(await table.write({ Put: { Item: { ...key, a: 1, gone: undefined } } })).toBeUndefined();
      expect(await table.get(key, { consistent: true })).toEqual({ ...key, a: 1 });
      expect(await table.get({ PK: 'WRITE#1', SK: 'OTHER' })).toBeUndefined();
    },
  ],
  [
    'a put replaces the whole item',
    async (table) => {
      const key = { PK: 'WRITE#2', SK };
      await table.write({ Put: { Item: { ...key, a: 1, b: 1 } } });
      await table.write({ Put: { Item: { ...key, a: 2 } } });
      expect(await table.get(key, { consistent: true })).toEqual({ ...key, a: 2 });
    },
  ],
  [
    'what was handed in or out is a copy',
    async (table) => {
      const item = { PK: 'WRITE#3', SK, list: [1] };
      await table.write({ Put: { Item: item } });
      item.list.push(2);
      const first = await table.get({ PK: 'WRITE#3', SK }, { consistent: true });
      (first as { list: number[] }).list.push(3);
      expect(await table.get({ PK: 'WRITE#3', SK }, { consistent: true })).toEqual({
        PK: 'WRITE#3',
        SK,
        list: [1],
      });
    },
  ],
  [
    'a put on condition of absence: the second is refused and shows the first',
    async (table) => {
      const key = { PK: 'WRITE#4', SK };
      const put = (n: number) => ({
        Put: { Item: { ...key, n, tags: new Set(['a']) }, ConditionExpression: 'attribute_not_exists(PK)' },
      });
      await table.write(put(1));
      await expect(table.write(put(2))).rejects.toMatchObject({
        code: 'CONDITION_FAILED',
        item: { ...key, n: 1, tags: new Set(['a']) },
      });
    },
  ],
  [
    'a refused update of an item that is not there shows none, and makes none',
    async (table) => {
      const Key = { PK: 'WRITE#5', SK };
      const Update = { Key, UpdateExpression: 'REMOVE a', ConditionExpression: 'attribute_exists(PK)' };
      await expect(table.write({ Update })).rejects.toMatchObject({
        code: 'CONDITION_FAILED',
        item: undefined,
      });
      expect(await table.get(Key, { consistent: true })).toBeUndefined();
    },
  ],
  [
    'NONE asks for no item in the refusal',
    async (table) => {
      const Item = { PK: 'WRITE#6', SK };
      await table.write({ Put: { Item } });
      const Put = {
        Item,
        ConditionExpression: 'attribute_not_exists(PK)',
        ReturnValuesOnConditionCheckFailure: 'NONE',
      } as const;
      await expect(table.write({ Put })).rejects.toMatchObject({ code: 'CONDITION_FAILED', item: undefined });
    },
  ],
  [
    'an update sees its condition and its values together',
    async (table) => {
      const Key = { PK: 'WRITE#7', SK };
      await table.write({ Put: { Item: { ...Key, status: 'PENDING', leaseUntil: 10, attempts: 0 } } });
      const claim = {
        Update: {
          Key,
          UpdateExpression: 'SET leaseUntil = :next, attempts = attempts + :one',
          ConditionExpression: '#status = :pending AND leaseUntil = :held',
          ExpressionAttributeNames: { '#status': 'status' },
          ExpressionAttributeValues: { ':next': 20, ':one': 1, ':pending': 'PENDING', ':held': 10 },
        },
      };
      expect(await table.write(claim)).toEqual({ ...Key, status: 'PENDING', leaseUntil: 20, attempts: 1 });
      await expect(table.write(claim)).rejects.toMatchObject({
        code: 'CONDITION_FAILED',
        item: { leaseUntil: 20, attempts: 1 },
      });
    },
  ],
  [
    'a delete removes, also what is not there, and obeys its condition',
    async (table) => {
      const Key = { PK: 'WRITE#8', SK };
      await table.write({ Put: { Item: { ...Key, token: 'a' } } });
      const Delete = (token: string) => ({
        Delete: {
          Key,
          ConditionExpression: '#token = :token',
          ExpressionAttributeNames: { '#token': 'token' },
          ExpressionAttributeValues: { ':token': token },
        },
      });
      await expect(table.write(Delete('b'))).rejects.toMatchObject({
        code: 'CONDITION_FAILED',
        item: { token: 'a' },
      });
      expect(await table.write(Delete('a'))).toBeUndefined();
      expect(await table.get(Key, { consistent: true })).toBeUndefined();
      await table.write({ Delete: { Key } });
    },
  ],
  [
    'a table named as the Mailroom table is the Mailroom table',
    async (table) => {
      const Item = { PK: 'WRITE#9', SK };
      await table.write({ Put: { Item, TableName: table.name } });
      expect(await table.get(Item, { consistent: true })).toEqual(Item);
    },
  ],
  [
    'an item of just under 400 KB is stored',
    async (table) => {
      const Item = { PK: 'WRITE#10', SK, blob: 'x'.repeat(409_000) };
      await table.write({ Put: { Item } });
      expect((await table.get({ PK: Item.PK, SK }, { consistent: true }))?.blob).toHaveLength(409_000);
    },
  ],
  [
    'createdAt is the same at every call, and not in the future',
    async (table) => {
      const created = await table.createdAt();
      expect(created).toBeLessThanOrEqual(Date.now());
      expect(created).toBeGreaterThan(Date.now() - 3_600_000);
      expect(await table.createdAt()).toBe(created);
    },
  ],
  [
    'a cancellation of a scheduled event happens once, and only while its lease ends at its due time',
    async (table) => {
      const dueAt = Date.UTC(2030, 0, 1);
      const ids = ['1', '2'].map((n) => mintEventId(dueAt, 1, (count) => Buffer.alloc(count, n)));
      const refused = { code: 'CONDITION_FAILED' };
      for (const [index, eventId] of ids.entries()) {
        const row = { ...outboxKeyOf(eventId), status: 'PENDING', source: 'orders', dueAt, schema: 1 };
        await table.write({ Put: { Item: { ...row, leaseUntil: dueAt + index } } });
      }
      const [unclaimed = '', claimed = ''] = ids;
      await expect(table.write(cancellationOf(unclaimed, 'strangers', 1_000))).rejects.toMatchObject(refused);
      await table.write(cancellationOf(unclaimed, 'orders', 1_000));
      await expect(table.write(cancellationOf(unclaimed, 'orders', 2_000))).rejects.toMatchObject({
        ...refused,
        item: { status: 'CANCELLED', cancelledAt: 1_000, cancelledBy: 'orders' },
      });
      await expect(table.write(cancellationOf(claimed, 'orders', 1_000))).rejects.toMatchObject({
        ...refused,
        item: { status: 'PENDING' },
      });
    },
  ],
  [
    'a last sequence is raised only from the number that was read',
    async (table) => {
      const { PK: key } = lastKey({
        source: 'things',
        consumer: 'c',
        group: 'strict',
        aggregateType: 'A',
        aggregateId: 'write',
      });
      const clock = { now: () => 1_000 };
      const raise = (sequence: number, seen: LastSequence, eventId?: string) =>
        table.transact([raiseLast(clock, { key, sequence, seen, eventId })]);
      const refused = { code: 'TRANSACTION_CANCELLED' };
      await raise(1, NOTHING_APPLIED, 'first');
      await expect(raise(1, NOTHING_APPLIED)).rejects.toMatchObject(refused);
      expect(await readLastSequence({ table }, key)).toMatchObject({ last: 1, eventId: 'first' });
      await raise(2, { last: 1, exists: true });
      await expect(raise(2, { last: 1, exists: true }, 'late')).rejects.toMatchObject(refused);
      expect(await readLastSequence({ table }, key)).toMatchObject({ last: 2, eventId: undefined });
    },
  ],
  ...(['Put', 'Update'] as const).map(
    (form): Case<Table> => [
      `a versioned ${form} gives each number once, and ignores older ones`,
      async (table) => {
        const Key = { PK: `WRITE#VERSION#${form}`, SK };
        const change = (by: string) =>
          form === 'Put'
            ? { Put: { Item: { ...Key, by } } }
            : {
                Update: {
                  Key,
                  UpdateExpression: 'SET #by = :by',
                  ExpressionAttributeNames: { '#by': 'by' },
                  ExpressionAttributeValues: { ':by': by },
                },
              };
        const refused = { code: 'TRANSACTION_CANCELLED' };
        for (const read of [undefined, 1]) {
          const row = await table.get(Key, { consistent: true });
          expect(row?.version).toBe(read);
          await table.transact([nextVersion(change('first'), { row }).write]);
          await expect(table.transact([nextVersion(change('second'), { row }).write])).rejects.toMatchObject(
            refused,
          );
        }
        const row = undefined; // a stale read
        await table.transact(ignoreOlder(change('newer'), { row, version: 5 }));
        await expect(table.transact(ignoreOlder(change('same'), { row, version: 5 }))).rejects.toMatchObject(
          refused,
        );
        await expect(table.transact(ignoreOlder(change('older'), { row, version: 4 }))).rejects.toMatchObject(
          refused,
        );
        expect(await table.get(Key, { consistent: true })).toEqual({ ...Key, by: 'newer', version: 5 });
      },
    ],
  ),
];
