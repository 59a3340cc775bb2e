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
    /** The exit code and the code of the error. */
    refusal: async (...argv: string[]) => {
      const { code, err } = await run(...argv, '--json');
      return [code, JSON.parse(err).error.code];
    },
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
    const { json, letterId, letters, refund, eventId, operations, rowOf } = await rig({ options });
    expect(await json('dlq', 'discard', source, letterId, '--reject')).toMatchObject({
      applied: false,
      deadLetters: [{ outcome: 'reject' }],
    });
    expect(await letters()).toEqual([letterId]);
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
    const { json, letterId } = await rig({ options, effect: true });
    const plan = await json('dlq', 'discard', source, letterId, '--reject');
    expect(plan.deadLetters).toMatchObject([{ outcome: 'reject' }]);
    const document = await json('dlq', 'discard', source, letterId, '--reject', ...APPLY);
    expect(document.deadLetters).toMatchObject([{ outcome: 'rejected' }]);
  });

  test('leaves a message whose handler has no rejected function, and says so in the plan', async () => {
    const { run, json, letterId, letters } = await rig();
    const message = expect.stringContaining('ThingHappened has no rejected function');
    for (const change of [[], APPLY])
      expect(await json('dlq', 'discard', source, letterId, '--reject', ...change)).toMatchObject({
        deadLetters: [{ outcome: 'not-rejectable', message }],
      });
    expect(await run('dlq', 'discard', source, letterId, '--reject', ...APPLY)).toMatchObject({ code: 1 });
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
    const { refusal } = await rig({ options });
    expect(await refusal('dlq', 'discard', 'dead', '--all', '--reject')).toEqual([2, 'BAD_ARGUMENT']);
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
    expect(await text(...resolve)).toContain(
      '1 write and 1 event: Put THING#1 / REFUND; event ThingHappened of Thing thing-1.',
    );
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
    const { refusal, eventId } = await rig();
    const resolve = ['messages', 'resolve', 'worker', eventId, '--commit', '/no/such/file'];
    expect(await refusal(...resolve)).toEqual([2, 'BAD_ARGUMENT']);
  });

  test('changes nothing if a condition of its writes fails', async () => {
    const { refusal, eventId, rowOf } = await rig();
    const update = {
      Update: {
        Key: { PK: 'THING#1', SK: 'THING' },
        UpdateExpression: 'REMOVE a',
        ConditionExpression: 'attribute_exists(PK)',
      },
    };
    const path = await file({ writes: [update] });
    const resolve = ['messages', 'resolve', 'worker', eventId, '--commit', path];
    expect(await refusal(...resolve, ...APPLY)).toEqual([2, 'FIX_REFUSED']);
    expect(await rowOf(eventId)).toMatchObject({ status: 'REJECTED' });
  });
});

describe('a rejected message whose row was deleted by hand', () => {
  test('is named by dlq list and every plan, and kept until its effects are checked', async () => {
    const { deleteRow, text, json, refusal, eventId, letterId, letters } = await rig();
    await deleteRow();
    expect(await text('dlq', 'list', source)).toContain('its inbox row was deleted by hand');
    expect((await json('dlq', 'redrive', source)).deadLetters).toMatchObject([{ verdict: 'row-deleted' }]);
    expect((await json('why', eventId)).verdict).toMatchObject({
      state: 'rejected',
      next: expect.stringContaining(`messages resolve worker ${eventId}`),
    });
    for (const change of [[], APPLY]) {
      const left = await json('dlq', 'discard', source, letterId, ...change);
      expect(left.deadLetters).toMatchObject([{ outcome: 'row-deleted' }]);
    }
    expect(await text('messages', 'resolve', 'worker', eventId)).toContain('--effects-checked');
    const resolve = ['messages', 'resolve', 'worker', eventId, ...APPLY];
    expect(await refusal(...resolve)).toEqual([2, 'EFFECTS_UNCHECKED']);
    expect(await letters()).toEqual([letterId]);
    const made = await json('dlq', 'discard', source, letterId, '--effects-checked', ...APPLY);
    expect(made.deadLetters).toMatchObject([{ outcome: 'discarded' }]);
    expect(await letters()).toEqual([]);
  });
});
