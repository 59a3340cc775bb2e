import { describe, expect, test } from 'vitest';
import { errorCode } from '../../../../lambdas/runtime/base/errors.ts';
import {
  type IgnoreOlderOptions,
  ignoreOlder,
  nextVersion,
  type VersionedWrite,
} from '../../../../lambdas/runtime/store/row-version.ts';
import type { Item, Write } from '../../../../lambdas/runtime/store/table.ts';
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
    /^The event has the version undefined; it must be a number of at most ±9007199254740991. Give the event a sequence/,
  ],
  [{ row: undefined, version: Number.NaN }, /^The event has the version NaN/],
  [{ row: undefined, version: 2 ** 53 }, /^The event has the version 9007199254740992;/], // two of them would be read as one number
  [
    { row: { version: 'of Ada' }, version: 8 },
    /^The row's attribute "version" has the version <a value of type string>;/,
  ],
  [{ row: { version: null }, version: 8 }, /has the version null;/],
  [{ row: { version: 2n ** 64n }, version: 8 }, /has the version 18446744073709551616;/],
])('rejects the message of a version that cannot be compared: %o', (options, text) => {
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

  test.each([
    ['7', '<a value of type string>'],
    [1.5, '1.5'],
    [null, 'null'],
    [2n ** 64n, '18446744073709551616'],
  ])('refuses a row whose version is %s', (version, shown) => {
    expect(() => nextVersion(change('a'), { row: { ...Key, version } })).toThrowError(
      expect.objectContaining({
        code: 'BAD_VERSION',
        message: expect.stringContaining(`the version ${shown}; it must be a whole number`),
      }),
    );
  });

  test('refuses a row that got any version after a read that found none', async () => {
    const table = memoryTable();
    const { write } = nextVersion(change('a'), { row: undefined });
    await table.write({ Put: { Item: { ...Key, version: 0 } } });
    await expect(table.transact([write])).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });
  });
});

describe.each<[string, (write: VersionedWrite, row?: Item) => readonly Write[]]>([
  ['ignoreOlder', (write, row) => ignoreOlder(write, { row, version: 7 })],
  ['nextVersion', (write, row) => [nextVersion(write, { row }).write]],
])('the write that %s extends', (_name, extend) => {
  const refused = (text: string) =>
    expect.objectContaining({ code: 'BAD_WRITE', message: expect.stringContaining(text) });

  test.each([
    '(street = :old)',
    ' ( (street = :old) OR attribute_not_exists(street) ) ',
    '(street = :old) OR (attribute_not_exists(street))',
    'street = :old OR attribute_not_exists(street)',
  ])('may have the condition %s: DynamoDB refuses parentheses around parentheses', async (condition) => {
    const table = memoryTable();
    await table.write({ Put: { Item: { ...Key, street: 'old' } } });
    const write = (old: string) => ({
      Put: {
        Item: { ...Key, street: 'old' },
        ConditionExpression: condition,
        ExpressionAttributeValues: { ':old': old },
      },
    });
    await expect(table.transact(extend(write('other')))).rejects.toMatchObject({
      code: 'TRANSACTION_CANCELLED',
    });
    await table.transact(extend(write('old')));
    await expect(table.transact(extend(write('old')))).rejects.toMatchObject({
      code: 'TRANSACTION_CANCELLED',
    });
  });

  test('may have its SET right before a name', async () => {
    const table = memoryTable();
    const Update = {
      Key,
      UpdateExpression: 'REMOVE a set#b=:b',
      ExpressionAttributeNames: { '#b': 'b' },
      ExpressionAttributeValues: { ':b': 1 },
    };
    await table.transact(extend({ Update }));
    expect(await table.get(Key)).toMatchObject({ b: 1, version: expect.any(Number) });
  });

  test.each([
    [{ ExpressionAttributeNames: { '#rowVersion': 'edition' } }, '#rowVersion'],
    [{ ExpressionAttributeValues: { ':rowVersion': 3 } }, ':rowVersion'],
    [{ ExpressionAttributeValues: { ':readVersion': 3 } }, ':readVersion'],
  ])('may not use the placeholders of the version itself: %j', (expression, name) => {
    expect(() => extend({ Put: { Item: Key, ...expression } })).toThrowError(refused(name));
  });

  test('may not carry a value of its own in the attribute of the version, except the one that was read', async () => {
    const table = memoryTable();
    expect(() => extend({ Put: { Item: { ...Key, version: 'second edition' } } })).toThrowError(
      refused('"version"'),
    );
    const row = { ...Key, version: 3 };
    await table.write({ Put: { Item: row } });
    await table.transact(extend({ Put: { Item: { ...row, street: 'a' } } }, row));
  });

  test('is one put or one update', () => {
    const both = { Put: { Item: Key }, Delete: { Key } };
    expect(() => extend(both)).toThrowError(refused('Put and Delete'));
    const deletion = { Delete: { Key } } as unknown as VersionedWrite;
    expect(() => extend(deletion)).toThrowError(refused('Delete'));
    const produced = { Put: { Item: Key }, ToolboxItem: Key }; // by dynamodb-toolbox
    expect(extend(produced)).toMatchObject([{ Put: { Item: Key } }]);
  });
});
