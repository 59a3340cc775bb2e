import { describe, expect, test, vi } from 'vitest';
import { PoisonMessage, RetryLater } from '../../../../lambdas/runtime/base/errors.ts';
import type { DecodeBody } from '../../../../lambdas/runtime/sources/body-decoder.ts';
import { unreadableId } from '../../../../lambdas/runtime/store/event-id.ts';
import { consumerConfig } from '../../../support/runtime-rig.ts';
import { counting, sourceRig } from './source-rig.ts';

/** An inbox with a decode, and the messages that it is given. */
function decoding(decode?: DecodeBody) {
  const parts = sourceRig({}, { decode });
  const { handler, events } = counting();
  const deliver = (body: string | Uint8Array | null, id = 'topic/0/1') =>
    parts.through(parts.inbox.process({ id, body, headers: { h: 'x' } }, handler));
  return { ...parts, events, deliver };
}

describe('a tombstone', () => {
  test('is done without a row, counted, and logged once', async () => {
    const { deliver, telemetry, memory, events } = decoding();
    expect(await deliver(null, 'topic/0/1')).toEqual({ kind: 'done' });
    expect(await deliver(null, 'topic/0/2')).toEqual({ kind: 'done' });
    expect(memory.items().filter(({ SK }) => SK === 'MESSAGE')).toEqual([]);
    expect(events).toEqual([]);
    expect(telemetry.counted('MessagesSkipped')).toBe(2);
    expect(telemetry.counted('MessagesReceived')).toBe(2);
    expect(telemetry.lines().filter(({ level }) => level === 'info')).toHaveLength(1);
  });

  test('is given to decode, which can make an event of it', async () => {
    const text = JSON.stringify(await sourceRig().envelope());
    const decode = vi.fn(async () => text);
    const { deliver, events } = decoding(decode);
    expect(await deliver(null)).toEqual({ kind: 'done' });
    expect(decode).toHaveBeenCalledWith({ id: 'topic/0/1', body: null, headers: { h: 'x' } });
    expect(events).toHaveLength(1);
  });
});

describe('decode', () => {
  test('turns a body into JSON, as text or bytes', async () => {
    const parts = decoding(({ body }) => Buffer.from(String(body).replace('#', ''), 'base64'));
    const body = `#${Buffer.from(JSON.stringify(await parts.envelope())).toString('base64')}`;
    expect(await parts.deliver(body)).toEqual({ kind: 'done' });
    expect(await parts.deliver(body)).toEqual({ kind: 'duplicate' });
    expect(parts.events).toHaveLength(1);
  });

  test('skips a message for which it returns undefined', async () => {
    const { deliver, telemetry, memory } = decoding(() => undefined);
    expect(await deliver('x')).toEqual({ kind: 'done' });
    expect(memory.items().filter(({ SK }) => SK === 'MESSAGE')).toEqual([]);
    expect(telemetry.counted('MessagesSkipped')).toBe(1);
  });

  test('rejects by a PoisonMessage, under the id of the body that was delivered, each time', async () => {
    const { deliver, row } = decoding(() => {
      throw new PoisonMessage('No schema 7', { code: 'NO_SCHEMA' });
    });
    for (let i = 0; i < 2; i += 1)
      expect(await deliver('x')).toMatchObject({ kind: 'rejected', reason: { code: 'NO_SCHEMA' } });
    expect(row(unreadableId('x'))).toMatchObject({ status: 'REJECTED', reason: 'NO_SCHEMA' });
  });

  test.each([[{}], [null], [7]])('that returns %j rejects the message', async (value) => {
    const { deliver } = decoding(() => value as never);
    expect(await deliver('x')).toMatchObject({
      kind: 'rejected',
      reason: { code: 'UNREADABLE_MESSAGE', message: expect.stringContaining('JSON.stringify(value)') },
    });
  });

  test('is retried by the schedule after an error, and ends after the attempts of the consumer', async () => {
    const { deliver, telemetry, memory } = decoding(async () => {
      throw new Error('The registry is away');
    });
    const answers = [];
    for (let i = 0; i < consumerConfig.maxAttempts; i += 1) answers.push(await deliver('x'));
    expect(answers.map(({ kind }) => kind)).toEqual(['retry', 'retry', 'rejected']);
    expect(answers[0]).toMatchObject({ reason: { message: 'The registry is away' } });
    expect(answers[2]).toMatchObject({ reason: { code: 'ATTEMPTS_EXHAUSTED' } });
    expect(telemetry.counted('MessagesFailed')).toBe(2);
    expect(memory.items().filter(({ status }) => status === 'FAILED')).toEqual([]);
    expect(await deliver('x')).toMatchObject({ kind: 'retry' });
  });

  test('counts the attempts of each message, and begins again after a success', async () => {
    let away = true;
    const text = JSON.stringify(await sourceRig().envelope());
    const { deliver } = decoding(() => {
      if (away) throw new Error('away');
      return text;
    });
    for (const id of ['a', 'b', 'a', 'b']) expect(await deliver('x', id)).toMatchObject({ kind: 'retry' });
    away = false;
    expect(await deliver('x', 'a')).toEqual({ kind: 'done' });
    away = true;
    expect(await deliver('x', 'a')).toMatchObject({ kind: 'retry' });
    expect(await deliver('x', 'b')).toMatchObject({ kind: 'rejected' });
  });

  test('can ask for a delay', async () => {
    const { deliver } = decoding(() => {
      throw new RetryLater(90_000);
    });
    expect(await deliver('x')).toMatchObject({ kind: 'retry', afterMs: 90_000 });
  });

  test('that does not end leaves a function of Lambda the time to answer, so that its attempts are counted', async () => {
    const { inbox, clock, through } = decoding(() => new Promise(() => {}));
    const { handler } = counting();
    const beganAt = clock.now();
    const message = { id: 'topic/0/1', body: 'x' };
    const answer = await through(inbox.process(message, handler, { remainingMs: 10_000 }));
    expect(answer).toMatchObject({ kind: 'retry', reason: { code: 'OUT_OF_TIME' } });
    expect(clock.now() - beganAt).toBeLessThan(8_000);
  });

  test('is not called in a function of Lambda that is about to end, and no attempt is counted', async () => {
    const decode = vi.fn(() => new Promise<string>(() => {}));
    const { inbox, through } = decoding(decode);
    const message = { id: 'topic/0/1', body: 'x' };
    for (let i = 0; i <= consumerConfig.maxAttempts; i += 1) {
      const answer = await through(inbox.process(message, counting().handler, { remainingMs: 2_000 }));
      expect(answer).toMatchObject({ kind: 'retry', reason: { code: 'NO_TIME_LEFT' } });
    }
    expect(decode).not.toHaveBeenCalled();
  });

  test('that does not end is retried', async () => {
    const { deliver } = decoding(() => new Promise(() => {}));
    expect(await deliver('x')).toMatchObject({ kind: 'retry', reason: { code: 'OUT_OF_TIME' } });
  });
});
