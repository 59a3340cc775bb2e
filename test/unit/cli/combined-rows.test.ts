import { describe, expect, test } from 'vitest';
import { combinedRows } from '../../../cli/deployment/combined-rows.ts';
import { dynamoRows } from '../../../cli/deployment/dynamo-rows.ts';
import { guardedTable } from '../../../cli/deployment/guarded-table.ts';
import { HOUR_MS } from '../../../lambdas/runtime/base/units.ts';
import { mintEventId, minuteOf, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import {
  deadKey,
  failedKey,
  inboxHistoryKey,
  inboxKey,
  operationKey,
  rejectedKey,
} from '../../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/row-schema.ts';
import type { Item } from '../../../lambdas/runtime/store/table.ts';
import { memoryTable } from '../../../testing/index.ts';

const AT = Date.parse('2026-11-21T01:09:00Z');

/** A Mailroom with rows in a table and in a second store, which stands for a database. */
async function made(inTable: readonly Item[], inDatabase: readonly Item[]) {
  const [table, other] = [memoryTable(), memoryTable()];
  for (const Item of inTable) await table.write({ Put: { Item } });
  for (const Item of inDatabase) await other.write({ Put: { Item } });
  const database = dynamoRows(other);
  const stored = combinedRows(database, dynamoRows(table), { consumers: [] });
  return { table, stored, guarded: guardedTable(table, database) };
}

function event(eventId: string, more: object = {}): Item {
  const envelope = JSON.stringify({ eventId, aggregateId: '42' });
  const row = {
    schema: SCHEMA,
    status: 'PENDING',
    leaseUntil: 0,
    attempts: 0,
    source: 's',
    type: 'T',
    envelope,
  };
  return { ...outboxKeyOf(eventId), ...row, ...more };
}

function message(consumer: string, eventId: string, more: object = {}): Item {
  return { ...inboxKey(consumer, eventId), schema: SCHEMA, status: 'PROCESSED', ...more };
}

async function idsIn(pages: AsyncIterable<{ readonly items: readonly string[]; readonly more: boolean }>) {
  const ids: string[] = [];
  const more: boolean[] = [];
  for await (const page of pages) {
    ids.push(...page.items);
    more.push(page.more);
  }
  return { ids, last: more.at(-1), before: more.slice(0, -1) };
}

describe('the events of a minute that are in two stores', () => {
  test.each([1, 2, 3, undefined])('are one list in their order, with pages of %s', async (pageSize) => {
    const ids = Array.from({ length: 7 }, (_, n) => mintEventId(AT + n, 1));
    const inTable = [0, 1, 2, 5].map((n) => event(ids[n] ?? ''));
    const { stored } = await made(
      inTable,
      [3, 4, 6].map((n) => event(ids[n] ?? '')),
    );
    const pages = stored.outbox.inMinute(minuteOf(AT), 0, { pageSize }, ({ SK }) =>
      SK.slice('EVENT#'.length),
    );
    const { ids: found, last, before } = await idsIn(pages);
    expect(found).toEqual(ids);
    expect(last).toBe(false);
    expect(before.every((more) => more)).toBe(true);
  });

  test('are selected by their status, their type, their source, a text and their ids', async () => {
    const [a, b, c] = [mintEventId(AT, 1), mintEventId(AT + 1, 1), mintEventId(AT + 2, 1)];
    const { stored } = await made([event(a, { type: 'U' }), event(c)], [event(b, { status: 'DEAD' })]);
    const found = async (choice: object) =>
      (await idsIn(stored.outbox.inMinute(minuteOf(AT), 0, choice, ({ SK }) => SK.slice('EVENT#'.length))))
        .ids;
    expect(await found({ status: 'DEAD' })).toEqual([b]);
    expect(await found({ type: 'U', source: 's' })).toEqual([a]);
    expect(await found({ source: 'other' })).toEqual([]);
    expect(await found({ containing: c })).toEqual([c]);
    expect(await found({ idPrefix: b })).toEqual([b]);
    expect(await found({ after: a })).toEqual([b, c]);
  });
});

test('the events that wait are those of both stores, also if the last sweep is in the future', async () => {
  const old = AT - HOUR_MS;
  const [a, b, published] = [mintEventId(old, 1), mintEventId(old, 1), mintEventId(old, 1)];
  const scheduled = mintEventId(AT + HOUR_MS, 1);
  const { stored } = await made(
    [event(a), event(published, { status: 'PUBLISHED', publishedAt: AT })],
    [event(b), event(scheduled, { dueAt: AT + HOUR_MS })],
  );
  const pending = async (sweptAt: number) => {
    const { items, more } = await stored.outbox.pending({ shards: [0], sweptAt }, AT);
    expect(items.every(({ envelope }) => envelope === '')).toBe(true);
    return { ids: items.map(({ SK }) => SK.slice('EVENT#'.length)).toSorted(), more };
  };
  const both = { ids: [a, b].toSorted(), more: false };
  expect(await pending(old - HOUR_MS)).toEqual(both);
  // The sweep reads its whole range again if its state has a time that is not yet.
  expect(await pending(AT + 24 * HOUR_MS)).toEqual(both);
});

test('single rows are found in either store, those of the database first', async () => {
  const [a, b] = [mintEventId(AT, 1), mintEventId(AT, 1)];
  const { stored } = await made(
    [event(a), message('worker', a), message('worker', b, { type: 'old' })],
    [event(b), message('worker', b, { type: 'new' })],
  );
  expect(await stored.outbox.byId(a)).toMatchObject(outboxKeyOf(a));
  expect(await stored.outbox.byIds([b, a], (id, row) => [id, row?.PK])).toEqual([
    [b, outboxKeyOf(b).PK],
    [a, outboxKeyOf(a).PK],
  ]);
  expect(await stored.outbox.byId('unreadable-1')).toBeUndefined();
  expect(await stored.inbox.byEvent('worker', b)).toMatchObject({ type: 'new' });
  const messages = [a, b].map((eventId) => ({ consumer: 'worker', eventId }));
  const types = await stored.inbox.byEvents(messages, (_message, row) => row && 'type' in row && row.type);
  expect(types).toEqual([false, 'new']);
});

test('dead letters, waiting messages and changes of both stores are listed', async () => {
  const [a, b] = [mintEventId(AT, 1), mintEventId(AT, 1)];
  const dead = { schema: SCHEMA, deadAt: AT, type: 'T', lastError: 'e', fingerprint: 'f' };
  const rejected = { schema: SCHEMA, rejectedAt: AT, reason: 'R', lastError: 'e', fingerprint: 'f' };
  const change = {
    schema: SCHEMA,
    at: AT,
    by: 'ada',
    command: 'ack',
    subject: 'x',
    reason: 'r',
    expiresAt: 1,
  };
  const failed = (eventId: string) => ({
    ...failedKey('worker', eventId),
    schema: SCHEMA,
    failedAt: AT,
    expiresAt: 1,
  });
  const { stored } = await made(
    [
      { ...deadKey(0, a), ...dead },
      { ...rejectedKey('worker', a), ...rejected },
      failed(a),
      { ...operationKey(AT, '1'), ...change },
    ],
    [
      { ...deadKey(0, b), ...dead },
      { ...rejectedKey('worker', b), ...rejected },
      failed(b),
      failed(a),
      { ...operationKey(AT - HOUR_MS, '2'), ...change, at: AT - HOUR_MS },
    ],
  );
  const { deadLetters, inbox, operations } = stored;
  expect((await deadLetters.dead([0], 5)).items.map(({ SK }) => SK)).toEqual([a, b]);
  expect((await deadLetters.rejected('worker', 5)).items.map(({ SK }) => SK)).toEqual([a, b].toSorted());
  expect(await deadLetters.isRejected('worker', b)).toBe(true);
  expect(await deadLetters.isRejected('other', b)).toBe(false);
  expect((await inbox.hinted('worker', 5)).items.map(({ eventId }) => eventId)).toEqual([a, b].toSorted());
  expect(await inbox.failedAt('worker', b)).toBe(AT);
  expect(new Set(await inbox.idsFrom('worker', a.slice(0, 8), 5))).toEqual(new Set([a, b]));
  const changes = await operations.between({ since: AT - 2 * HOUR_MS, until: AT });
  expect(changes.items).toHaveLength(2);
  expect(await stored.createdAt()).toBeTypeOf('number');
});

test('a message that both stores have rejected is listed once, as the database has it, and in the order of the ids', async () => {
  const [a, b, c] = [mintEventId(AT, 1), mintEventId(AT + 1, 1), mintEventId(AT + 2, 1)];
  const rejected = (eventId: string, reason: string) => ({
    ...rejectedKey('moved', eventId),
    ...{ schema: SCHEMA, rejectedAt: AT, reason, lastError: 'e', fingerprint: 'f' },
  });
  const { stored } = await made(
    [rejected(b, 'OLD'), rejected(c, 'OLD')],
    [rejected(a, 'NEW'), rejected(b, 'NEW')],
  );
  const { items } = await stored.deadLetters.rejected('moved', 5);
  expect(items).toMatchObject([
    { SK: a, reason: 'NEW' },
    { SK: b, reason: 'NEW' },
    { SK: c, reason: 'OLD' },
  ]);
});

test('a change of an inbox row in the database is refused, before it reads or writes one in the table', async () => {
  const [own, theirs] = [mintEventId(AT, 1), mintEventId(AT, 1)];
  const history = { ...inboxHistoryKey('moved'), schema: SCHEMA, retentions: [], changedAt: AT };
  const { table, guarded } = await made([], [message('worker', theirs), history]);
  const refused = { code: 'NOT_IN_DATABASE' };
  await expect(guarded.get(inboxKey('worker', theirs))).rejects.toMatchObject(refused);
  const update = { key: inboxKey('worker', theirs), set: { status: 'FAILED' }, when: {} };
  await expect(guarded.updateEach([update])).rejects.toMatchObject(refused);
  const put = { Put: { Item: message('moved', own) } };
  await expect(guarded.write(put)).rejects.toMatchObject(refused);
  await expect(guarded.transact([{ Put: { Item: message('worker', own) } }, put])).rejects.toMatchObject(
    refused,
  );
  expect(await table.get(inboxKey('worker', own))).toBeUndefined();
  await guarded.write({ Put: { Item: message('worker', own) } });
  expect(await table.get(inboxKey('worker', own))).toBeDefined();
});
