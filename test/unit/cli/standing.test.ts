import { expect, test } from 'vitest';
import { dynamoRows } from '../../../cli/deployment/dynamo-rows.ts';
import {
  isHandled,
  REPLACEMENTS_MAX,
  readStanding,
  unsentReplacement,
} from '../../../cli/reports/dead-letters/standing.ts';
import { mintEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { memoryTable } from '../../../testing/index.ts';

/** Events of which each is replaced by the next; the last has no row. */
async function chainOf(length: number) {
  const table = memoryTable();
  const ids = Array.from({ length }, (_, i) => mintEventId(1_795_266_081_793 + i, 8));
  for (const [i, id] of ids.slice(0, -1).entries()) {
    const row = { schema: 1, status: 'DISCARDED', attempts: 0, fence: 'f' };
    await table.write({ Put: { Item: { ...inboxKey('payments', id), ...row, replacedBy: ids[i + 1] } } });
  }
  const standing = await readStanding(dynamoRows(table), 'payments', ids[0] ?? '');
  return { table, ids, standing, last: ids.at(-1) ?? '' };
}

test('the standing of an event names all of its replacements, in order', async () => {
  const { standing, ids, last } = await chainOf(4);
  expect(standing.replacements?.map(({ eventId }) => eventId)).toEqual(ids.slice(1));
  expect(unsentReplacement(standing)).toBe(last);
  expect(isHandled(standing)).toBe(false);
});

test('an event is handled once its last replacement has a row', async () => {
  const { table, ids, last } = await chainOf(4);
  await table.write({
    Put: { Item: { ...inboxKey('payments', last), schema: 1, status: 'FAILED', attempts: 1, fence: 'f' } },
  });
  const standing = await readStanding(dynamoRows(table), 'payments', ids[0] ?? '');
  expect(unsentReplacement(standing)).toBeUndefined();
  expect(isHandled(standing)).toBe(true);
});

test('an event without a row has no replacement, and is not handled', async () => {
  const { standing } = await chainOf(1);
  expect(standing).toEqual({ row: undefined, replacements: [] });
  expect(unsentReplacement(standing)).toBeUndefined();
  expect(isHandled(standing)).toBe(false);
});

test('an event with more replacements than are followed is not handled', async () => {
  const { standing, ids } = await chainOf(REPLACEMENTS_MAX + 3);
  expect(standing.replacements).toHaveLength(REPLACEMENTS_MAX);
  expect(unsentReplacement(standing)).toBe(ids[REPLACEMENTS_MAX + 1]);
  expect(isHandled(standing)).toBe(false);
});
