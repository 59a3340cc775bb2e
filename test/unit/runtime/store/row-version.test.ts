import { describe, expect, test } from 'vitest';
import { errorCode } from '../../../../lambdas/runtime/base/errors.ts';
import {
  type IgnoreOlderOptions,
  ignoreOlder,
  nextVersion,
} from '../../../../lambdas/runtime/store/row-version.ts';
import { memoryTable } from '../../../../testing/index.ts';

const Key = { PK: 'CUSTOMER#1', SK: 'ADDRESS' };

/** Applies versions in the order of their arrival; each handler reads before any of them commits. */
async function apply(versions: readonly number[], form: 'Put' | 'Update') {
  const table = memoryTable();
  const applied: boolean[] = [];
  const row = await table.get(Key);
  for (const version of versions) {
    const write =
      form === 'Put'
        ? { Put: { Item: { ...Key, street: `street ${version}` } } }
        : {
            Update: {
              Key,
              UpdateExpression: 'SET street = :s',
              ExpressionAttributeValues: { ':s': `street ${version}` },
            },
          };
    const stale = ignoreOlder(write, { row, version });
    const result = await table.transact(stale).then(
      () => true,
      () => false,
    );
    applied.push(result);
  }
  return { applied, row: await table.get(Key, { consistent: true }) };
}

describe.each(['Put', 'Update'] as const)('ignoreOlder with %s', (form) => {
  test('keeps the newest of events that arrive in any order, also on stale reads', async () => {
    expect(await apply([2, 1, 3, 3], form)).toEqual({
      applied: [true, false, true, false],
      row: { ...Key, street: 'street 3', version: 3 },
    });
  });

  test('returns no write for a row with this version or a later one', () => {
    const write = form === 'Put' ? { Put: { Item: Key } } : { Update: { Key, UpdateExpression: 'REMOVE a' } };
    for (const version of [4, 5])
      expect(ignoreOlder(write, { row: { ...Key, version: 5 }, version })).toEqual([]);
  });
});

test('keeps the condition, names and values of the write', async () => {
  const table = memoryTable();
  const change = (version: number, name: string) =>
    ignoreOlder(
      {
        Update: {
          Key,
          UpdateExpression: 'REMOVE formerName SET #name = :name',
          ConditionExpression: 'attribute_not_exists(closedAt) OR closedAt > :name',
          ExpressionAttributeNames: { '#name': 'name' },
          ExpressionAttributeValues: { ':name': name },
        },
      },
      { row: undefined, version, attribute: 'nameVersion' },
    );
  await table.transact(change(1, 'Ada'));
  await table.transact(change(2, 'Grace'));
  expect(await table.get(Key)).toEqual({ ...Key, name: 'Grace', nameVersion: 2 });
  await expect(table.transact(change(1, 'Ida'))).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });
  await table.write({ Put: { Item: { ...Key, closedAt: 'A', nameVersion: 2 } } });
  await expect(table.transact(change(3, 'Joan'))).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });
});

test('adds the clause to an update that sets nothing', async () => {
  const table = memoryTable();
  await table.write({ Put: { Item: { ...Key, mindSET: 1, version: 1 } } });
  await table.transact(
    ignoreOlder({ Update: { Key, UpdateExpression: 'REMOVE mindSET ' } }, { row: undefined, version: 2 }),
  );
  expect(await table.get(Key)).toEqual({ ...Key, version: 2 });
});

test.each<[IgnoreOlderOptions, RegExp]>([
  [
    { row: undefined, version: undefined },
    /^The event has the version undefined; it must be a number. Give the event a sequence/,
  ],
  [{ row: undefined, version: Number.NaN }, /^The event has the version null/],
  [{ row: { version: '7' }, version: 8 }, /^The row's attribute "version" has the version "7"/],
])('rejects the message of a version that cannot be compared: %j', (options, text) => {
  let thrown: unknown;
  try {
    ignoreOlder({ Put: { Item: Key } }, options);
  } catch (error) {
    thrown = error;
  }
  expect(errorCode(thrown)).toBe('BAD_VERSION');
  expect((thrown as Error).name).toBe('PoisonMessage');
  expect((thrown as Error).message).toMatch(text);
});

describe.each(['Put', 'Update'] as const)('nextVersion with %s', (form) => {
  const change = (street: string) =>
    form === 'Put'
      ? { Put: { Item: { ...Key, street } } }
      : { Update: { Key, UpdateExpression: 'SET street = :s', ExpressionAttributeValues: { ':s': street } } };

  test('numbers the changes of a row from 1, without a gap', async () => {
    const table = memoryTable();
    const versions: number[] = [];
    for (const street of ['a', 'b', 'c']) {
      const { write, version } = nextVersion(change(street), { row: await table.get(Key) });
      await table.transact([write]);
      versions.push(version);
    }
    expect(versions).toEqual([1, 2, 3]);
    expect(await table.get(Key)).toEqual({ ...Key, street: 'c', version: 3 });
  });

  test('gives a number to one of two writers who read the same version', async () => {
    const table = memoryTable();
    for (const read of [0, 1]) {
      const row = await table.get(Key);
      expect(row?.version ?? 0).toBe(read);
      const [first, second] = [nextVersion(change('a'), { row }), nextVersion(change('b'), { row })];
      await table.transact([first.write]);
      await expect(table.transact([second.write])).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });
    }
  });

  test('does not bring back a row that was deleted after the read, or replaced by a younger one', async () => {
    const table = memoryTable();
    const { write } = nextVersion(change('a'), { row: { ...Key, version: 5 } });
    await expect(table.transact([write])).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });
    await table.write({ Put: { Item: { ...Key, version: 1 } } });
    await expect(table.transact([write])).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });
  });

  test.each(['7', 1.5, null])('refuses a row whose version is %j', (version) => {
    expect(() => nextVersion(change('a'), { row: { ...Key, version } })).toThrowError(
      expect.objectContaining({
        code: 'BAD_VERSION',
        message: expect.stringContaining(`the version ${JSON.stringify(version)};`),
      }),
    );
  });
});
