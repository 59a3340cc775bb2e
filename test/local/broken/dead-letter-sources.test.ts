import { randomUUID } from 'node:crypto';
import { deflateRawSync } from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { byId, directory, queues, seeing } from '../support/dead-letters.ts';
import { mailroom } from '../support/mailroom.ts';
import { get, put } from '../support/order-system.ts';
import { printedCommand, runPrinted } from '../support/printed-command.ts';
import { deadEvent, forgottenEvent } from '../support/stuck-events.ts';

vi.setConfig({ maxConcurrency: 10 });

describe.concurrent('DEAD events', () => {
  it('dlq redrive publishes DEAD events that dlq list shows', async () => {
    const { eventId } = await deadEvent();
    const listed = await mailroom('dlq', 'list', 'dead', '--json');
    expect(listed.code).toBe(0);
    expect(byId(listed.json().deadLetterSources[0].deadLetters)[eventId]).toMatchObject({
      eventId,
      type: 'OrderPlaced',
      expiresAt: null,
      fingerprint: 'relay MalformedDetail: The entry is malformed.',
    });
    const run = await mailroom(
      ...['dlq', 'redrive', 'dead', eventId, '--wait', '15m', '--apply'],
      ...['--reason', 'fixed', '--json'],
    );
    expect(run.code, run.err).toBe(0);
    expect(run.json().deadLetters).toMatchObject([{ verdict: 'runs', outcome: 'processed' }]);
    expect(await get(outboxKeyOf(eventId))).toMatchObject({ status: 'PUBLISHED', requeuedReason: 'fixed' });
  });

  it('dlq redrive --cause publishes the DEAD events of that cause, once', async () => {
    const word = randomUUID().replaceAll(/\d/g, '').replaceAll('-', '');
    const [one, two] = await Promise.all([deadEvent(`This is ${word}.`), deadEvent(`This is ${word}.`)]);
    const ids = [one.eventId, two.eventId].sort();
    const listed = (await mailroom('dlq', 'list', 'dead', '--by', 'cause', '--json')).json();
    const [{ source, causes }] = listed.deadLetterSources;
    expect(source).toBe('dead');
    const own = causes.find(({ fingerprint }: { fingerprint: string }) => fingerprint.includes(word));
    expect(own).toMatchObject({ count: 2, oldestAt: expect.any(Number), newestAt: expect.any(Number) });
    expect(ids).toContain(own.example);
    const redrive = ['dlq', 'redrive', 'dead', '--cause', word.toUpperCase(), '--apply', '--wait', '15m'];
    redrive.push('--reason', 'fixed', '--json');
    const run = await mailroom(...redrive);
    expect(run.code, run.err).toBe(0);
    expect(Object.keys(byId(run.json().deadLetters)).sort()).toEqual(ids);
    expect((await mailroom(...redrive)).json().deadLetters).toEqual([]);
    for (const eventId of ids)
      expect(await get(outboxKeyOf(eventId))).toMatchObject({ status: 'PUBLISHED', requeuedReason: 'fixed' });
  });

  it('dlq discard marks a DEAD event DISCARDED', async () => {
    const { eventId } = await deadEvent();
    const argv = ['dlq', 'discard', 'dead', eventId, '--reason', 'a test order', '--json'];
    expect((await mailroom(...argv)).json()).toMatchObject({ applied: false });
    expect(await get(outboxKeyOf(eventId))).toMatchObject({ status: 'DEAD' });
    expect((await mailroom(...argv, '--apply')).json().deadLetters).toMatchObject([{ outcome: 'discarded' }]);
    expect(await get(outboxKeyOf(eventId))).toMatchObject({
      status: 'DISCARDED',
      expiresAt: expect.any(Number),
    });
    expect((await mailroom(...argv, '--apply')).code).toBe(3);
  });

  it('dlq discard --cause leaves an event with another cause DEAD', async () => {
    const word = randomUUID().replaceAll(/\d/g, '').replaceAll('-', '');
    const [one, other] = await Promise.all([deadEvent(`This is ${word}.`), deadEvent()]);
    const argv = ['dlq', 'discard', 'dead', '--cause', word, '--reason', 'a test order', '--json'];
    const run = await mailroom(...argv, '--apply');
    expect(run.code, run.err).toBe(0);
    expect(run.json().deadLetters).toMatchObject([{ id: one.eventId, outcome: 'discarded' }]);
    expect(await get(outboxKeyOf(other.eventId))).toMatchObject({ status: 'DEAD' });
    expect((await mailroom('dlq', 'discard', 'dead', other.eventId, ...argv.slice(5), '--apply')).code).toBe(
      0,
    );
    const both = await mailroom(...argv, '--all');
    expect(both.code).toBe(2);
  });
});

describe.concurrent('dead letters of the stream', () => {
  it('dlq redrive of a relay dead letter publishes its batch and deletes the dead letter', async () => {
    const ageMs = 30 * 60_000;
    const { eventId } = await forgottenEvent(ageMs);
    const at = new Date(Date.now() - ageMs).toISOString();
    const deadLetter = await queues.send(
      directory.mailroom.failureQueue,
      JSON.stringify({
        requestContext: { condition: 'RetryAttemptsExhausted' },
        version: '1.0',
        DDBStreamBatchInfo: {
          approximateArrivalOfFirstRecord: at,
          approximateArrivalOfLastRecord: at,
          batchSize: 1,
        },
      }),
    );
    const unreadable = await queues.send(directory.mailroom.failureQueue, 'no JSON');
    const argv = ['dlq', 'redrive', 'stream', '--json', deadLetter, unreadable];
    const plan = byId((await seeing(...argv)).json().deadLetters);
    expect(plan[deadLetter]).toMatchObject({ verdict: 'runs', fingerprint: 'RetryAttemptsExhausted' });
    expect(plan[unreadable]).toMatchObject({ verdict: 'fails', code: 'UNREADABLE_DEAD_LETTER' });
    expect(await get(outboxKeyOf(eventId))).toMatchObject({ status: 'PENDING' });

    const run = await seeing(...argv, '--apply', '--reason', 'the stream is back');
    expect(run.code).toBe(1); // the other one is there still
    expect(byId(run.json().deadLetters)[deadLetter]).toMatchObject({ outcome: 'processed' });
    expect(await get(outboxKeyOf(eventId))).toMatchObject({ status: 'PUBLISHED' });

    const discard = ['dlq', 'discard', 'stream', unreadable, '--reason', 'not ours', '--apply'];
    const discarded = await seeing(...discard);
    expect(discarded.code).toBe(0);
    expect(unwrapped(discarded.out)).toContain('A redrive looks in every shard.');
    expect((await mailroom(...discard)).code).toBe(3);
  });
});

it('DEAD events, one of them too large: the status and a list show what helps, and its commands repair all', async () => {
  const requeueable = await Promise.all([deadEvent(), deadEvent(), deadEvent()]);
  const large = await deadEvent('Total size of the entries in the request is over the limit.');
  const key = outboxKeyOf(large.eventId);
  const envelope = deflateRawSync(JSON.stringify('x'.repeat(999_990)));
  await put({ ...(await get(key)), ...key, envelope, encoding: 'deflate-raw' });
  const why = await mailroom('why', large.eventId);
  expect(unwrapped(why.out)).toContain('EventBridge accepts fewer than 1000000');
  printedCommand(why, `dlq discard dead ${large.eventId}`);

  const status = await mailroom('status');
  const list = await runPrinted(printedCommand(status, 'dlq list dead'));
  expect(unwrapped(list.out)).toMatch(/3 would publish .* relay MalformedDetail: The entry is malformed/);
  expect(unwrapped(list.out)).toMatch(/1 would fail .* relay MalformedDetail: Total size/);

  const plan = await runPrinted(printedCommand(list, 'dlq redrive dead'));
  const apply = printedCommand(plan, 'dlq redrive dead', '--apply');
  const redriven = await runPrinted(apply, 'the entries were fixed', '--wait', '15m');
  expect(redriven.code, redriven.err).toBe(1); // the large one is left
  expect(redriven.out).toContain('3 of 3 published');
  for (const { eventId } of requeueable)
    expect(await get(outboxKeyOf(eventId))).toMatchObject({ status: 'PUBLISHED' });

  const discard = await runPrinted(printedCommand(list, 'dlq discard dead'));
  const discarded = await runPrinted(
    printedCommand(discard, '--apply'),
    'written again, without the picture',
  );
  expect(discarded.code, discarded.err).toBe(0);
  expect(await get(outboxKeyOf(large.eventId))).toMatchObject({ status: 'DISCARDED' });
  expect((await mailroom('why', large.eventId)).code).toBe(0);
  const { out } = await mailroom('dlq', 'list', 'dead');
  for (const { eventId } of [large, ...requeueable]) expect(out).not.toContain(eventId);
});

it.each([
  [['dlq', 'list', 'nowhere'], 3, 'NO_SUCH_SOURCE'],
  [['dlq', 'redrive'], 2, 'source'],
  [['dlq', 'redrive', 'consumer:nobody'], 3, 'consumer:payments'],
  [['dlq', 'redrive', 'dead', '--rate', '0/s'], 2, 'dead letters per second'],
  [['dlq', 'redrive', 'dead', '--limit', 'all'], 2, 'whole number'],
  [['dlq', 'redrive', 'dead', '--wait', '5'], 2, 'whole number with a unit'],
  [['dlq', 'discard', 'stream', '--reason', 'why not'], 2, 'BAD_ARGUMENT'],
  [['dlq', 'redrive', 'dead', '--apply'], 2, '--apply needs a reason'],
  [['dlq', 'redrive', 'dead', '--apply', '--reason', '…'], 2, 'the bank is back'],
  [['dlq', 'discard', 'stream', '--all', '--apply'], 2, '--reason'],
  [['dlq', 'discard', 'stream', '--all', '--reason', ' '], 2, 'a reason of 3'],
])('%j is refused', async (argv, code, says) => {
  const run = await mailroom(...argv);
  expect(run.code).toBe(code);
  expect(unwrapped(run.err)).toContain(says);
});

it('where nothing is dead there is nothing to do', async () => {
  const empty = await mailroom('dlq', 'redrive', 'rule:order-status', '--apply', '--reason', 'nothing');
  expect(empty).toMatchObject({ code: 0, err: '' });
  const discard = ['dlq', 'discard', 'rule:order-status', '--all', '--reason', 'nothing', '--apply'];
  expect(await mailroom(...discard)).toMatchObject({ code: 0, err: '' });
  expect(await mailroom('dlq', 'list', 'rule:order-status')).toMatchObject({
    code: 0,
    out: 'No dead letters.\n',
  });
});
