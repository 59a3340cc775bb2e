import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { worker } from './support/mailroom-in-memory.ts';
import { APPLY, rejected, source } from './support/rejected-event.ts';
import { runInMemory } from './support/run-in-memory.ts';

const refund = { Put: { Item: { PK: 'THING#1', SK: 'REFUND' } } };
const announced = ThingHappened.create({ aggregateId: 'thing-1', data: { n: 7 } });

/** A rejected message of a consumer that owns `THING#*`. */
async function rig(options: Parameters<typeof rejected>[0] = {}) {
  const made = await rejected(options);
  const { directory } = made;
  const consumers = directory.consumers.map((entry) => ({ ...entry, domainKeys: ['THING#*'] }));
  const mailroom = { ...made, directory: { ...directory, consumers } };
  const run = (...argv: string[]) => made.until(runInMemory(mailroom, argv));
  return {
    ...mailroom,
    run,
    text: async (...argv: string[]) => unwrapped((await run(...argv)).out),
    json: async (...argv: string[]) => JSON.parse((await run(...argv, '--json')).out),
    deleteRow: () => made.memory.write({ Delete: { Key: { ...inboxKey(worker.name, made.eventId) } } }),
    refund: () => made.memory.item({ PK: 'THING#1', SK: 'REFUND' }),
    /** The operations that were recorded, as `<command> <subject>`. */
    operations: () =>
      made.memory
        .items()
        .filter(({ PK }) => String(PK).startsWith('OPERATIONS#'))
        .map(({ command, subject }) => `${String(command)}: ${String(subject)}`),
  };
}

describe('dlq discard --reject', () => {
  const options = { rejected: async () => ({ writes: [refund], events: [announced] }) };

  test('commits what the rejected function returns, deletes the dead letter and records the event', async () => {
    const { text, json, letterId, letters, refund, eventId, operations, rowOf } = await rig({ options });
    const plan = await text('dlq', 'discard', source, letterId, '--reject');
    expect(plan).toContain('Nothing was changed. To reject them:');
    expect(plan).toContain(`dlq discard ${source} ${letterId} --reject --apply`);
    const document = await json('dlq', 'discard', source, letterId, '--reject', ...APPLY);
    expect(document.deadLetters).toMatchObject([{ outcome: 'rejected' }]);
    expect(await letters()).toEqual([]);
    expect(refund()).toBeDefined();
    expect(await rowOf(eventId)).toMatchObject({
      status: 'DISCARDED',
      discardedReason: 'the price was wrong',
    });
    expect(operations()).toEqual([`dlq discard --reject: ${source} ${eventId}`]);
  });

  test('needs no check of an effect that has completed, because the rejected function reads its result', async () => {
    const { text, json, letterId } = await rig({ options, effect: true });
    const plan = await text('dlq', 'discard', source, letterId, '--reject');
    expect(plan).not.toContain('--effects-checked');
    const document = await json('dlq', 'discard', source, letterId, '--reject', ...APPLY);
    expect(document.deadLetters).toMatchObject([{ outcome: 'rejected' }]);
  });

  test('leaves a message whose handler has no rejected function, and says so in the plan', async () => {
    const { text, run, letterId, letters } = await rig();
    const expected =
      'The deployed handler of ThingHappened has no rejected function. Discard it without --reject.';
    expect(await text('dlq', 'discard', source, letterId, '--reject')).toContain(expected);
    const { code, out } = await run('dlq', 'discard', source, letterId, '--reject', ...APPLY);
    expect(code).toBe(1);
    expect(unwrapped(out)).toContain('1 left: they cannot be rejected.');
    expect(await letters()).toEqual([letterId]);
  });

  test('leaves a message whose rejected function throws, with its error', async () => {
    const rejects = { rejected: async () => Promise.reject(new Error('the ledger is closed')) };
    const { json, letterId, letters, eventId, rowOf } = await rig({ options: rejects });
    const document = await json('dlq', 'discard', source, letterId, '--reject', ...APPLY);
    expect(document.deadLetters).toMatchObject([
      { outcome: 'not-rejectable', message: expect.stringContaining('the ledger is closed') },
    ]);
    expect(await letters()).toEqual([letterId]);
    expect(await rowOf(eventId)).toMatchObject({ status: 'REJECTED' });
  });

  test('refuses a source without messages of a consumer', async () => {
    const { run } = await rig({ options });
    const { code, err } = await run('dlq', 'discard', 'dead', '--all', '--reject');
    expect(code).toBe(2);
    expect(unwrapped(err)).toContain("--reject runs a consumer's rejected function");
  });
});

describe('messages resolve --commit', () => {
  const event = { type: 'ThingHappened', aggregateType: 'Thing', aggregateId: 'thing-1', data: { n: 7 } };

  async function file(fix: unknown): Promise<string> {
    const path = join(await mkdtemp(join(tmpdir(), 'fix-')), 'fix.json');
    await writeFile(path, typeof fix === 'string' ? fix : JSON.stringify(fix));
    return path;
  }

  test('commits the rows and events of the file with PROCESSED', async () => {
    const { text, run, eventId, refund: row, rowOf, rows } = await rig();
    const path = await file({ writes: [refund], events: [event] });
    const resolve = ['messages', 'resolve', 'worker', eventId, '--commit', path];
    const plan = await text(...resolve);
    expect(plan).toContain(
      '1 write and 1 event: Put THING#1 / REFUND; event ThingHappened of Thing thing-1.',
    );
    expect(plan).toContain(`--commit ${path} --apply`);
    expect(row()).toBeUndefined();
    expect(await run(...resolve, ...APPLY)).toMatchObject({ code: 0 });
    expect(row()).toBeDefined();
    expect(await rowOf(eventId)).toMatchObject({
      status: 'PROCESSED',
      resolvedReason: 'the price was wrong',
    });
    const [cause, written] = rows();
    expect(JSON.parse(written?.envelope ?? '{}')).toMatchObject({
      ...event,
      causationId: eventId,
      correlationId: JSON.parse(cause?.envelope ?? '{}').correlationId,
    });
  });

  test.each([
    ['is not JSON', '{', 'the file is not JSON'],
    ['is a list', [], 'the file is not an object'],
    [
      'has a write with a number that would be rounded',
      '{"writes":[{"Put":{"Item":{"PK":"THING#1","SK":"T","rate":12345678.123456789012}}}]}',
      'The number 12345678.123456789012 has more digits than JavaScript keeps, so it would be rounded. Write it as a string',
    ],
    [
      'has an event with a number that would be rounded',
      '{"events":[{"type":"ThingHappened","aggregateType":"Thing","aggregateId":"1","data":{"n":9007199254740993}}]}',
      'The number 9007199254740993 has more digits',
    ],
    ['is empty', {}, 'the file has neither writes nor events'],
    ['has an unknown member', { write: [] }, 'the file has a member "write"'],
    ['has writes that are not a list', { writes: {} }, 'the file has "writes" that are not a list'],
    ['has an event without a type', { events: [{ data: 1 }] }, 'the file has no text in events[0].type'],
    [
      'writes a key of another service',
      { writes: [{ Delete: { Key: { PK: 'ORDER#1', SK: 'x' } } }] },
      'writes[0] has the partition key "ORDER#1", which is not among the domainKeys of worker (THING#*)',
    ],
    ['has a write of two kinds', { writes: [{ ...refund, Delete: {} }] }, 'A write has Put and Delete set'],
  ])('refuses a file that %s', async (_what, fix, message) => {
    const { run, eventId } = await rig();
    const { code, err } = await run('messages', 'resolve', 'worker', eventId, '--commit', await file(fix));
    expect(code).toBe(2);
    expect(unwrapped(err)).toContain(message);
  });

  test('refuses a file that cannot be read', async () => {
    const { run, eventId } = await rig();
    const { code, err } = await run('messages', 'resolve', 'worker', eventId, '--commit', '/no/such/file');
    expect(code).toBe(2);
    expect(unwrapped(err)).toContain('--commit: ENOENT');
  });

  test('changes nothing if a condition of its writes fails', async () => {
    const { run, eventId, rowOf } = await rig();
    const update = {
      Update: {
        Key: { PK: 'THING#1', SK: 'THING' },
        UpdateExpression: 'REMOVE a',
        ConditionExpression: 'attribute_exists(PK)',
      },
    };
    const path = await file({ writes: [update] });
    const { code, err } = await run('messages', 'resolve', 'worker', eventId, '--commit', path, ...APPLY);
    expect(code).toBe(2);
    expect(unwrapped(err)).toContain('refused to commit the fix');
    expect(await rowOf(eventId)).toMatchObject({ status: 'REJECTED' });
  });
});

describe('a rejected message whose row was deleted by hand', () => {
  test('is named by dlq list and every plan, and kept until its effects are checked', async () => {
    const { deleteRow, text, json, run, eventId, letterId, letters } = await rig();
    await deleteRow();
    expect(await text('dlq', 'list', source)).toContain('its inbox row was deleted by hand');
    expect(await text('dlq', 'redrive', source)).toContain('1 whose inbox row was deleted by hand');
    const why = await text('why', eventId);
    expect(why).toContain('its inbox row was deleted by hand');
    expect(why).toContain(`messages resolve worker ${eventId}`);
    const discard = await text('dlq', 'discard', source, letterId);
    expect(discard).toContain('deleted by hand');
    expect(discard).toContain('--effects-checked');
    const left = await json('dlq', 'discard', source, letterId, ...APPLY);
    expect(left.deadLetters).toMatchObject([{ outcome: 'row-deleted' }]);
    const plan = await text('messages', 'resolve', 'worker', eventId);
    expect(plan).toContain('It was rejected, and its row was deleted by hand.');
    expect(plan).toContain('--effects-checked');
    const refused = await run('messages', 'resolve', 'worker', eventId, ...APPLY);
    expect(unwrapped(refused.err)).toContain('was deleted by hand, so it cannot tell which side effects');
    expect(await letters()).toEqual([letterId]);
    const made = await json('dlq', 'discard', source, letterId, '--effects-checked', ...APPLY);
    expect(made.deadLetters).toMatchObject([{ outcome: 'discarded' }]);
    expect(await letters()).toEqual([]);
  });
});
