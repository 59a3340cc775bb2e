import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import {
  type Table,
  TRANSACTION_ACTIONS_MAX,
  type TransactAction,
} from '../../lambdas/runtime/store/table.ts';
import type { Case } from './cases.ts';

const put = (PK: string, SK: string, rest = {}): TransactAction => ({ Put: { Item: { PK, SK, ...rest } } });
const putNew = (PK: string, SK: string, rest = {}): TransactAction => ({
  Put: { Item: { PK, SK, ...rest }, ConditionExpression: 'attribute_not_exists(PK)' },
});
const increment = (PK: string, SK: string): TransactAction => ({
  Update: { Key: { PK, SK }, UpdateExpression: 'ADD n :one', ExpressionAttributeValues: { ':one': 1 } },
});

/** Writes of several items at once. */
export const transactionCases: readonly Case<Table>[] = [
  [
    'a transaction puts, updates, deletes and checks, all at once',
    async (table) => {
      const PK = 'TRANSACT#1';
      await table.transact([
        put(PK, 'updated', { n: 1 }),
        put(PK, 'deleted'),
        put(PK, 'checked', { ok: true }),
      ]);
      await table.transact([
        putNew(PK, 'put', { tags: new Set(['a']) }),
        increment(PK, 'updated'),
        { Delete: { Key: { PK, SK: 'deleted' }, ConditionExpression: 'attribute_exists(PK)' } },
        {
          ConditionCheck: {
            Key: { PK, SK: 'checked' },
            ConditionExpression: 'ok = :yes',
            ExpressionAttributeValues: { ':yes': true },
          },
        },
      ]);
      const { items } = await table.query({ pk: PK, consistent: true });
      expect(items).toEqual([
        { PK, SK: 'checked', ok: true },
        { PK, SK: 'put', tags: new Set(['a']) },
        { PK, SK: 'updated', n: 2 },
      ]);
    },
  ],
  [
    'one refusal cancels all; every action has its reason, and its item where it asked for it',
    async (table) => {
      const PK = 'TRANSACT#2';
      await table.transact([put(PK, 'asked', { tags: new Set([1]) }), put(PK, 'silent')]);
      const cancelled = table.transact([
        put(PK, 'fine'),
        {
          Put: {
            Item: { PK, SK: 'asked' },
            ConditionExpression: 'attribute_not_exists(PK)',
            ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
          },
        },
        putNew(PK, 'silent'),
        {
          ConditionCheck: {
            Key: { PK, SK: 'absent' },
            ConditionExpression: 'attribute_exists(PK)',
            ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
          },
        },
        increment(PK, 'fine too'),
      ]);
      await expect(cancelled).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });
      const { reasons } = (await cancelled.catch((error: unknown) => error)) as { reasons: object[] };
      const refused = { code: 'ConditionalCheckFailed', message: expect.any(String) };
      expect(reasons).toEqual([
        { code: 'None' },
        { ...refused, item: { PK, SK: 'asked', tags: new Set([1]) } },
        refused,
        refused,
        { code: 'None' },
      ]);
      const { items } = await table.query({ pk: PK, consistent: true });
      expect(items.map((item) => item.SK)).toEqual(['asked', 'silent']);
    },
  ],
  [
    'an update in a refused transaction shows the item as it stood',
    async (table) => {
      const PK = 'TRANSACT#3';
      await table.transact([put(PK, 'row', { status: 'PROCESSED', fence: 'theirs' })]);
      const Update = {
        Key: { PK, SK: 'row' },
        UpdateExpression: 'SET fence = :mine',
        ConditionExpression: 'fence = :mine',
        ExpressionAttributeValues: { ':mine': 'mine' },
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      } as const;
      await expect(table.transact([{ Update }])).rejects.toMatchObject({
        reasons: [{ code: 'ConditionalCheckFailed', item: { status: 'PROCESSED', fence: 'theirs' } }],
      });
    },
  ],
  [
    'a token makes a repeat do nothing',
    async (table) => {
      const PK = 'TRANSACT#4';
      const token = randomUUID();
      await table.transact([increment(PK, 'counter')], token);
      await table.transact([increment(PK, 'counter')], token);
      expect(await table.get({ PK, SK: 'counter' }, { consistent: true })).toEqual({
        PK,
        SK: 'counter',
        n: 1,
      });
      await table.transact([increment(PK, 'counter')], randomUUID());
      await table.transact([increment(PK, 'counter')]);
      await table.transact([increment(PK, 'counter')]);
      expect(await table.get({ PK, SK: 'counter' }, { consistent: true })).toMatchObject({ n: 4 });
    },
  ],
  [
    'a token repeats a success even when its condition no longer holds',
    async (table) => {
      const PK = 'TRANSACT#5';
      const token = randomUUID();
      await table.transact([putNew(PK, 'row')], token);
      await table.transact([putNew(PK, 'row')], token);
      await expect(table.transact([putNew(PK, 'row')], randomUUID())).rejects.toMatchObject({
        code: 'TRANSACTION_CANCELLED',
      });
    },
  ],
  [
    'a token of a cancelled transaction may be tried again',
    async (table) => {
      const PK = 'TRANSACT#6';
      const token = randomUUID();
      await table.transact([put(PK, 'row')]);
      await expect(table.transact([putNew(PK, 'row')], token)).rejects.toMatchObject({
        code: 'TRANSACTION_CANCELLED',
      });
      await table.write({ Delete: { Key: { PK, SK: 'row' } } });
      await table.transact([putNew(PK, 'row')], token);
      expect(await table.get({ PK, SK: 'row' }, { consistent: true })).toEqual({ PK, SK: 'row' });
    },
  ],
  [
    'refused: a token for other actions, or one that is too long',
    async (table) => {
      const PK = 'TRANSACT#7';
      const token = randomUUID();
      await table.transact([put(PK, 'a')], token);
      await expect(table.transact([put(PK, 'b')], token)).rejects.toMatchObject({
        name: 'IdempotentParameterMismatchException',
      });
    },
  ],
  [
    'refused: a token of more than 36 characters',
    async (table) => {
      const long = table.transact([put('TRANSACT#8', 'a')], 'x'.repeat(37));
      await expect(long).rejects.toMatchObject({ name: 'ValidationException' });
    },
  ],
  [
    'refused: two actions on one item',
    async (table) => {
      const PK = 'TRANSACT#9';
      const Key = { PK, SK: 'a' };
      for (const second of [
        increment(PK, 'a'),
        { ConditionCheck: { Key, ConditionExpression: 'attribute_not_exists(PK)' } },
      ]) {
        await expect(table.transact([put(PK, 'a'), second])).rejects.toMatchObject({
          name: 'ValidationException',
        });
      }
      expect(await table.get(Key, { consistent: true })).toBeUndefined();
    },
  ],
  [
    '100 actions go through, 101 and none are refused',
    async (table) => {
      const PK = 'TRANSACT#10';
      const actions = Array.from({ length: TRANSACTION_ACTIONS_MAX + 1 }, (_, n) => put(PK, String(n)));
      await expect(table.transact(actions)).rejects.toMatchObject({ name: 'ValidationException' });
      expect((await table.query({ pk: PK, consistent: true })).items).toHaveLength(0);
      await table.transact(actions.slice(0, TRANSACTION_ACTIONS_MAX));
      expect((await table.query({ pk: PK, consistent: true })).items).toHaveLength(TRANSACTION_ACTIONS_MAX);
      await expect(table.transact([])).rejects.toMatchObject({ name: 'ValidationException' });
    },
  ],
  [
    'refused: more than 4 MB in one transaction',
    async (table) => {
      const PK = 'TRANSACT#11';
      const actions = Array.from({ length: 11 }, (_, n) => put(PK, String(n), { blob: 'x'.repeat(400_000) }));
      await expect(table.transact(actions)).rejects.toMatchObject({ name: 'ValidationException' });
      expect((await table.query({ pk: PK, consistent: true })).items).toHaveLength(0);
    },
  ],
  [
    'refused: a condition check without a condition',
    async (table) => {
      const ConditionCheck = { Key: { PK: 'TRANSACT#12', SK: 'a' }, ConditionExpression: undefined };
      await expect(table.transact([{ ConditionCheck }])).rejects.toMatchObject({
        name: 'ValidationException',
      });
    },
  ],
];
