import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { dataChanges } from '../../../cli/changes/resend/data-changes.ts';
import { resentEventId } from '../../../cli/changes/resend/resend-plan.ts';
import { eventIdShard, eventIdTime, mintEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey, rejectedKey } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { worker } from './support/mailroom-in-memory.ts';
import { APPLY, rejected, source } from './support/rejected-event.ts';
import { runInMemory } from './support/run-in-memory.ts';

describe('a resend', () => {
  test('is planned first: what changes, the new id and the verdict of the deployed code; nothing is changed', async () => {
    const { resend, eventId, letterId, sent, rowOf } = await rejected();
    const { exitCode, document } = await resend({ n: 5 });
    expect(exitCode).toBe(0);
    expect(document).toMatchObject({
      source,
      consumer: 'worker',
      id: letterId,
      eventId,
      newEventId: resentEventId('worker', eventId, { n: 5 }),
      applied: false,
      verdict: 'runs',
      changes: [{ path: 'n', change: 'changed' }],
    });
    expect(document.changes[0]).not.toHaveProperty('before');
    expect(sent).toEqual([]);
    expect(await rowOf(eventId)).toMatchObject({ status: 'REJECTED' });
  });

  test('runs the new event at the consumer once, and the old one never again', async () => {
    const { resend, eventId, letterId, sent, rowOf, ran, command, queues, deliver } = await rejected();
    const { exitCode, document } = await resend({ n: 5 }, ...APPLY);
    expect(exitCode).toBe(0);
    expect(document).toMatchObject({
      outcome: 'processed',
      next: `npx cdk-mailroom dlq discard ${source} ${letterId} --stage dev`,
    });
    const { newEventId } = document;
    expect(ran).toEqual([5]);
    expect(sent.map(({ url }) => url)).toEqual(['queue']);
    const { detail } = JSON.parse(sent[0]?.body ?? '');
    expect(detail).toMatchObject({ eventId: newEventId, causationId: eventId, hops: 1, data: { n: 5 } });
    expect(await rowOf(newEventId)).toMatchObject({ status: 'PROCESSED' });
    expect(await rowOf(eventId)).toMatchObject({
      status: 'DISCARDED',
      discardedReason: 'the price was wrong',
      replacedBy: newEventId,
    });
    // The letter itself is as it was, and stays until it is discarded.
    const [letter] = await queues.receive('dead-letters', { limit: 10 });
    expect(JSON.parse(letter?.body ?? '').detail.data).toEqual({ n: -1 });
    const { document: log } = await command('', 'operations');
    expect(log.operations).toMatchObject([
      {
        command: 'dlq resend',
        subject: `${source}: ${eventId} as ${newEventId}`,
        reason: 'the price was wrong',
      },
    ]);
    await command('', 'dlq', 'redrive', source, '--apply', '--reason', 'a redrive of all');
    await deliver();
    expect(ran).toEqual([5]);
  });

  test('prints the members in docs/cli-json.md', async () => {
    const { resend } = await rejected();
    const page = await readFile('docs/cli-json.md', 'utf8');
    const [, section = ''] = page.split('\n## dlq resend\n');
    const [, json = ''] = /```json\n([\s\S]*?)```/.exec(section) ?? [];
    const { document } = await resend({ n: 5 }, ...APPLY);
    const expected = JSON.parse(json);
    expect(Object.keys(document)).toEqual(Object.keys(expected));
    expect(Object.keys(document.changes[0])).toEqual(Object.keys(expected.changes[0]));
  });

  test('is shown to people with its changes, its verdict and the command that comes next', async () => {
    const rig = await rejected();
    const folder = await mkdtemp(join(tmpdir(), 'resend-'));
    const [right, wrong] = [join(folder, 'right.json'), join(folder, 'wrong.json')];
    await writeFile(right, '{"n": 5}');
    await writeFile(wrong, '{"n": "five"}');
    const run = async (...options: readonly string[]) => {
      const { code, out } = await rig.until(
        runInMemory(rig, ['dlq', 'resend', source, rig.letterId, ...options]),
      );
      return `${code} ${unwrapped(out)}`;
    };
    const plan = await run('--data', right, '--payload');
    expect(plan).toMatch(/^0 Stack mailroom-dev, account \d+, region eu-west-1 ThingHappened /);
    expect(plan).toContain(
      'changed n -1 5 verdict: would run Nothing was changed. To send it to worker only:',
    );
    expect(plan).toContain(`--data ${right} --apply --reason '…'`);
    expect(await run('--data', right)).not.toContain('-1 5');
    expect(await run('--data', wrong)).toContain(
      'verdict: would fail: INVALID_PAYLOAD: The payload of ThingHappened',
    );
    const applied = await run('--data', right, ...APPLY);
    expect(applied).toContain(`To plan its removal: npx cdk-mailroom dlq discard ${source} ${rig.letterId}`);
    await rm(folder, { recursive: true });
  });

  test('a repeated resend sends nothing that runs again', async () => {
    const { resend, ran, sent } = await rejected();
    const data = { n: 5 };
    await resend(data, ...APPLY);
    const again = await resend(data, ...APPLY);
    expect(again).toMatchObject({ exitCode: 0, document: { verdict: 'handled', outcome: 'processed' } });
    expect(ran).toEqual([5]);
    expect(sent).toHaveLength(1);
  });

  test('a resend that was interrupted between the discard and the send is completed by repeating it', async () => {
    const rig = await rejected();
    const send = rig.queues.send;
    Object.assign(rig.queues, { send: () => Promise.reject(new Error('The command died')) });
    expect((await rig.resend({ n: 5 }, ...APPLY)).document.error.message).toBe('The command died');
    Object.assign(rig.queues, { send });
    expect(await rig.rowOf(rig.eventId)).toMatchObject({ status: 'DISCARDED' });
    expect((await rig.resend({ n: 5 }, ...APPLY)).document).toMatchObject({ outcome: 'processed' });
    expect(rig.ran).toEqual([5]);
  });

  test('whose send took effect without a response is repeated, and its event runs once', async () => {
    const rig = await rejected();
    const send = rig.queues.send;
    const lost = async (url: string, body: string) => {
      await send(url, body);
      throw new Error('The response was lost');
    };
    Object.assign(rig.queues, { send: lost });
    expect((await rig.resend({ n: 5 }, ...APPLY)).document.error.message).toBe('The response was lost');
    Object.assign(rig.queues, { send });
    // Repeated before the first message is delivered.
    const argv = ['dlq', 'resend', source, rig.letterId, '--data', '-', ...APPLY];
    const repeated = rig.started({ n: 5 }, ...argv);
    await vi.waitFor(() => expect(rig.sent).toHaveLength(2), { timeout: 60_000 });
    expect(await rig.until(repeated)).toMatchObject({ exitCode: 0 });
    await rig.drain();
    expect(rig.ran).toEqual([5]);
  });

  test('sends nothing if a worker takes the old event after the plan', async () => {
    const rig = await rejected();
    const write = rig.table.write;
    const row = { status: 'PROCESSING', claimedAt: 1, leaseUntil: 4_000_000_000_000, fence: 'a worker' };
    const taken = { ...inboxKey('worker', rig.eventId), schema: 1, attempts: 1, ...row };
    const afterPlan: typeof write = async (action) => {
      await write({ Put: { Item: taken } });
      return write(action);
    };
    Object.assign(rig.deployment.table, { write: afterPlan });
    const { document } = await rig.resend({ n: 5 }, ...APPLY);
    expect(document.error).toMatchObject({
      code: 'CANNOT_RESEND',
      message: expect.stringContaining('is leased at worker since the plan. Nothing was sent.'),
    });
    expect(rig.sent).toEqual([]);
  });

  test('sends nothing if a side effect of the old event has started after the plan, and asks for its provider', async () => {
    const rig = await rejected();
    const write = rig.table.write;
    const effects = { charge: { status: 'IN_PROGRESS', startedAt: 1, endsBy: 2, run: 1, fence: 'a worker' } };
    const row = { status: 'REJECTED', fence: 'a worker', fingerprint: 'the bank is down', effects };
    // Another operator's redrive: the old event has run until its charge, and was rejected again.
    let redriven = false;
    const afterPlan: typeof write = async (action) => {
      if (!redriven)
        await write({
          Put: { Item: { ...inboxKey('worker', rig.eventId), schema: 1, attempts: 1, ...row } },
        });
      redriven = true;
      return write(action);
    };
    Object.assign(rig.deployment.table, { write: afterPlan });
    const cut = await rig.resend({ n: 5 }, ...APPLY);
    expect(cut.document.error).toMatchObject({
      code: 'CANNOT_RESEND',
      message: expect.stringContaining('charge (no result is stored)'),
    });
    expect(cut.document.error.message).toContain('Nothing was sent.');
    // Repeated without the provider's answer, it is refused as before.
    expect((await rig.resend({ n: 5 }, ...APPLY)).document.error.message).toContain('--repeat-effects');
    expect(rig.sent).toEqual([]);
    const asked = await rig.resend({ n: 5 }, '--repeat-effects', ...APPLY);
    expect(asked.document).toMatchObject({ outcome: 'processed' });
    expect(rig.ran).toEqual([5]);
  });

  test('one of two concurrent resends with different data is sent', async () => {
    const { command, letterId, ran, sent } = await rejected();
    const resends = [5, 6].map((n) => {
      const argv = ['dlq', 'resend', source, letterId, '--data', '-', ...APPLY];
      return command({ n }, ...argv);
    });
    const results = await Promise.all(resends);
    expect(results.map(({ exitCode }) => exitCode).sort()).toEqual([0, 2]);
    expect(ran).toHaveLength(1);
    expect(sent).toHaveLength(1);
  });

  test('names its events to why: each names the other', async () => {
    const { resend, command, eventId } = await rejected();
    const { newEventId } = (await resend({ n: 5 }, ...APPLY)).document;
    const old = await command('', 'why', eventId);
    expect(old.exitCode).toBe(0);
    expect(old.document.verdict).toMatchObject({
      state: 'discarded',
      text: expect.stringContaining(newEventId),
    });
    expect(old.document.events[0]).toMatchObject({ eventId, caused: [newEventId] });
    const own = await command('', 'why', newEventId);
    expect(own.exitCode).toBe(0);
    expect(own.document.verdict).toMatchObject({
      state: 'processed',
      text: expect.stringContaining(eventId),
    });
    expect(own.document.events).toMatchObject([{ eventId: newEventId, causationId: eventId, status: null }]);
  });

  test('why reports a resend that was recorded but never sent as missing, and names the remedy', async () => {
    const rig = await rejected();
    Object.assign(rig.queues, { send: () => Promise.reject(new Error('The command died')) });
    await rig.resend({ n: 5 }, ...APPLY);
    await rig.clock.advance(600_000);
    const { exitCode, document } = await rig.command(
      '',
      'why',
      resentEventId('worker', rig.eventId, { n: 5 }),
    );
    expect(exitCode).toBe(1);
    expect(document.verdict.state).toBe('missing');
    expect(document.verdict.text).toContain('Repeat the resend with the same data');
    expect(document.verdict.next).toBe(
      `npx cdk-mailroom dlq resend ${source} ${rig.eventId} --data data.json --stage dev`,
    );
  });

  test('why does not know the event of a resend that came second: it is never sent', async () => {
    const rig = await rejected();
    const send = rig.queues.send;
    Object.assign(rig.queues, { send: () => Promise.reject(new Error('The command died')) });
    // The other resend is recorded, too, and comes second.
    const argv = ['dlq', 'resend', source, rig.letterId, '--data', '-', ...APPLY];
    const both = [5, 6].map((n) => rig.command({ n }, ...argv));
    await Promise.all(both);
    Object.assign(rig.queues, { send });
    await rig.clock.advance(600_000);
    const verdicts = await Promise.all(
      [5, 6].map(async (n) => {
        const { document } = await rig.command('', 'why', resentEventId('worker', rig.eventId, { n }));
        return document.verdict?.state ?? document.error.code;
      }),
    );
    expect(verdicts.sort()).toEqual(['NO_SUCH_EVENT', 'missing']);
  });

  test('a resend of data that the deployed code refuses sends nothing and says why', async () => {
    const { resend, sent, eventId, rowOf } = await rejected();
    const { exitCode, document } = await resend({ n: 'five' }, ...APPLY);
    expect(exitCode).toBe(1);
    expect(document).toMatchObject({ verdict: 'fails', code: 'INVALID_PAYLOAD', outcome: 'kept' });
    expect(sent).toEqual([]);
    expect(await rowOf(eventId)).toMatchObject({ status: 'REJECTED' });
  });

  test('whose event fails again is reported, and its own dead letter can be resent', async () => {
    const { resend, ran, drain, queue, command } = await rejected();
    const first = await resend({ n: -2 }, ...APPLY);
    expect(first).toMatchObject({ exitCode: 1, document: { outcome: 'failed-again' } });
    expect((await resend({ n: 5 })).document.error).toMatchObject({ code: 'ALREADY_RESENT' });
    await drain();
    const letter = queue.deadLetters().at(-1)?.messageId ?? '';
    const argv = ['dlq', 'resend', source, letter, '--data', '-', ...APPLY];
    const second = await command({ n: 5 }, ...argv);
    expect(second.document).toMatchObject({ eventId: first.document.newEventId, outcome: 'processed' });
    expect(ran).toEqual([5]);
  });

  test('is refused if the old event has started a side effect, whose key would be another one', async () => {
    const { resend, ran } = await rejected({ effect: true });
    const { exitCode, document } = await resend({ n: 5 });
    expect(exitCode).toBe(2);
    expect(document.error.code).toBe('CANNOT_RESEND');
    expect(document.error.message).toContain('charge (completed)');
    expect((await resend({ n: 5 }, '--repeat-effects', ...APPLY)).document).toMatchObject({
      outcome: 'processed',
    });
    expect(ran).toEqual([5]);
  });

  test('is refused for data that the filter of the subscription excludes: its queue would take it', async () => {
    const { resend, deployment, sent } = await rejected();
    const [consumer] = deployment.directory.consumers;
    const events = [{ source: 'things', type: 'ThingHappened', filter: { n: [-1, 5] } }];
    Object.assign(deployment, {
      directory: { ...deployment.directory, consumers: [{ ...consumer, events }] },
    });
    const { document } = await resend({ n: 6 }, ...APPLY);
    expect(document.error).toMatchObject({
      code: 'CANNOT_RESEND',
      message: expect.stringContaining('filter'),
    });
    expect(sent).toEqual([]);
    expect((await resend({ n: 5 })).exitCode).toBe(0);
  });

  test('sends nothing once the inbox may have forgotten whether the old event or another one in its place ran', async () => {
    const { resend, clock, memory, eventId, sent, rowOf } = await rejected();
    await clock.advance((worker.inboxRetentionDays + 1) * 86_400_000);
    for (const key of [inboxKey('worker', eventId), rejectedKey('worker', eventId)])
      await memory.write({ Delete: { Key: { ...key } } }); // as TTL does with a row that was processed
    const { exitCode, document } = await resend({ n: 5 }, ...APPLY);
    expect(exitCode).toBe(1);
    expect(document).toMatchObject({ verdict: 'too-old', outcome: 'kept' });
    expect(sent).toEqual([]);
    expect(await rowOf(eventId)).toBeUndefined();
  });

  test('is refused while a function may still run a side effect of the old event, whatever the operator has asked', async () => {
    const { resend, memory, eventId, clock, sent } = await rejected();
    const endsBy = clock.now() + 60_000;
    const effects = { charge: { status: 'IN_PROGRESS', startedAt: 1, endsBy, run: 1, fence: 'f' } };
    const row = { schema: 1, status: 'REJECTED', fence: 'f', attempts: 1, effects };
    await memory.write({ Put: { Item: { ...inboxKey('worker', eventId), ...row } } });
    const early = await resend({ n: 5 }, '--repeat-effects', ...APPLY);
    expect(early.document.error).toMatchObject({
      code: 'CANNOT_RESEND',
      message: expect.stringContaining('may still run side effects'),
    });
    expect(sent).toEqual([]);
    await clock.advance(70_000);
    expect((await resend({ n: 5 }, '--repeat-effects', ...APPLY)).document.outcome).toBe('processed');
  });

  test.each([
    ['data that is not JSON', '{"n": 5', 'BAD_ARGUMENT'],
    ['no data', '', 'BAD_ARGUMENT'],
    ['data that is nested too deeply', `${'['.repeat(101)}${']'.repeat(101)}`, 'BAD_ARGUMENT'],
    ['a number that would be sent rounded', '{"n": 1, "id": 12345678901234567890}', 'BAD_ARGUMENT'],
    ['a number that would be sent as null', '{"n": 1e400}', 'BAD_ARGUMENT'],
    ['a number that would be sent as 0', '{"n": 1e-400}', 'BAD_ARGUMENT'],
    ['the data of the dead letter', '{"n": -1}', 'CANNOT_RESEND'],
    [
      'data that is over the limit of EventBridge',
      JSON.stringify({ n: 1, note: 'x'.repeat(1_000_000) }),
      'EVENT_TOO_LARGE',
    ],
  ])('is refused for %s', async (_name, data, code) => {
    const { resend, sent } = await rejected();
    expect(await resend(data, ...APPLY)).toMatchObject({ exitCode: 2, document: { error: { code } } });
    expect(sent).toEqual([]);
  });

  test.each([
    ['dead', 'its producer'],
    ['stream', 'batch'],
  ])('is refused for the source %s', async (name, why) => {
    const { command } = await rejected();
    const { document } = await command({ n: 5 }, 'dlq', 'resend', name, 'any', '--data', '-');
    expect(document.error).toMatchObject({ code: 'CANNOT_RESEND', message: expect.stringContaining(why) });
  });

  test('is refused for a dead letter whose envelope cannot be read', async () => {
    const { command, addDeadLetter, clock } = await rejected();
    const letter = {
      messageId: 'letter-2',
      receiptHandle: 'r',
      body: 'no JSON',
      sentAt: clock.now(),
      attributes: {},
    };
    addDeadLetter('dead-letters', letter);
    const { document } = await command({ n: 5 }, 'dlq', 'resend', source, 'letter-2', '--data', '-');
    expect(document.error).toMatchObject({
      code: 'CANNOT_RESEND',
      message: expect.stringContaining('envelope'),
    });
  });

  test.each([
    ['has been processed', { status: 'PROCESSED' }, 'has already processed'],
    ['is held by a worker', { status: 'PROCESSING', leaseUntil: 4_000_000_000_000 }, 'A worker holds'],
  ])('is refused if the old event %s', async (_name, row, text) => {
    const { resend, memory, eventId } = await rejected();
    await memory.write({
      Put: { Item: { ...inboxKey('worker', eventId), schema: 1, fence: 'f', attempts: 1, ...row } },
    });
    const { document } = await resend({ n: 5 }, ...APPLY);
    expect(document.error).toMatchObject({ code: 'CANNOT_RESEND', message: expect.stringContaining(text) });
  });
});

describe('the id of a resent event', () => {
  const eventId = mintEventId(1_795_266_081_793, 8);

  test('is the same for the same consumer, event and data, whatever the order of members, and has the time of its cause', () => {
    const id = resentEventId('payments', eventId, { a: 1, b: { c: 2, d: [3] } });
    expect(resentEventId('payments', eventId, { b: { d: [3], c: 2 }, a: 1 })).toBe(id);
    expect(eventIdTime(id)).toBe(eventIdTime(eventId));
    expect(eventIdShard(id)).toBeLessThan(256);
  });

  test('is another one for another consumer, event or data', () => {
    const ids = [
      resentEventId('payments', eventId, { a: 1 }),
      resentEventId('inventory', eventId, { a: 1 }),
      resentEventId('payments', mintEventId(1_795_266_081_793, 8), { a: 1 }),
      resentEventId('payments', eventId, { a: '1' }),
      resentEventId('payments', eventId, [['a', 1]]),
      resentEventId('payments', eventId, { members: [['a', 1]] }),
    ];
    expect(new Set(ids).size).toBe(ids.length);
  });
});

test('the changes of data name each member that was added, removed or changed', () => {
  const before = { a: 1, b: { c: [1, 2] }, d: null };
  const after = { a: 1, b: { c: [1, 3, 4] }, e: 'x' };
  expect(dataChanges(before, after)).toEqual([
    { path: 'b.c[1]', change: 'changed', before: 2, after: 3 },
    { path: 'b.c[2]', change: 'added', before: undefined, after: 4 },
    { path: 'd', change: 'removed', before: null, after: undefined },
    { path: 'e', change: 'added', before: undefined, after: 'x' },
  ]);
  expect(dataChanges(before, structuredClone(before))).toEqual([]);
  expect(dataChanges([1], { 0: 1 })).toMatchObject([{ path: '', change: 'changed' }]);
});
