import { describe, expect, test } from 'vitest';
import { nextTurn } from '../../../../lambdas/runtime/base/clock.ts';
import { RetryLater } from '../../../../lambdas/runtime/base/errors.ts';
import { consumeJetStream } from '../../../../lambdas/runtime/sources/jet-stream-consumer.ts';
import { consumeRabbit } from '../../../../lambdas/runtime/sources/rabbit-consumer.ts';
import { rabbitId, receivesOf } from '../../../../lambdas/runtime/sources/rabbit-retries.ts';
import { jetStreamDouble, rabbitDouble } from './broker-doubles.ts';
import { counting, gate, sourceRig } from './source-rig.ts';

const failing = (error: () => Error) => counting(async () => Promise.reject(error())).handler;
const envelopeText = async (parts: ReturnType<typeof sourceRig>, n = 1) =>
  JSON.stringify(await parts.envelope(n));

describe('JetStream', () => {
  async function consuming(handler = counting().handler, config = {}, concurrency?: number) {
    const parts = sourceRig();
    const double = jetStreamDouble(config);
    const kept: unknown[] = [];
    const { inbox, clock } = parts;
    const loop = await consumeJetStream({
      consumer: double.consumer,
      inbox,
      handler,
      clock,
      concurrency,
      deadLetter: async (letter) => kept.push(letter),
    });
    return { ...parts, ...double, kept, loop };
  }

  test('starts every message at once; its ack wait is extended every third of it while it runs', async () => {
    const { opened, open } = gate();
    const { handler, events } = counting(() => opened);
    const parts = await consuming(handler);
    for (const n of [1, 2, 3]) parts.send(await envelopeText(parts, n), n);
    await parts.clock.advance(25_000);
    expect(events).toHaveLength(3);
    expect(parts.told.filter((line) => line === 'working 2')).toHaveLength(2);
    open();
    await parts.idle();
    expect(parts.told.filter((line) => line.startsWith('ack'))).toEqual(['ack 1', 'ack 2', 'ack 3']);
    expect(parts.told.filter((line) => line.startsWith('working'))).toHaveLength(6);
  });

  test('passes the headers, the position and the number of deliveries on', async () => {
    const parts = sourceRig();
    const double = jetStreamDouble();
    const seen: unknown[] = [];
    const inbox = {
      ...parts.inbox,
      process: async (message: object) => {
        seen.push(message);
        return { kind: 'done' } as const;
      },
    };
    await consumeJetStream({
      consumer: double.consumer,
      inbox,
      handler: counting().handler,
      deadLetter: async () => {},
    });
    double.send('x', 9, 4, { source: 'things' });
    await parts.clock.advance(1);
    expect(seen).toEqual([
      { id: 'ORDERS/9', body: Buffer.from('x'), headers: { source: 'things' }, receives: 4, sentAt: 1e9 },
    ]);
  });

  test('keeps the dead letter with its message before it terminates a body that is not an envelope', async () => {
    const parts = await consuming();
    parts.send('x');
    await parts.clock.advance(1_000);
    expect(parts.told).toEqual(['term 1']);
    expect(parts.kept).toMatchObject([
      {
        id: 'worker/ORDERS/1',
        reason: { code: 'UNREADABLE_MESSAGE' },
        message: { seq: 1, data: Buffer.from('x') },
      },
    ]);
  });

  test('keeps a dead letter without the instructions of its publisher to the server', async () => {
    const parts = await consuming();
    const headers: Record<string, string> = {
      'Nats-Msg-Id': 'm',
      'Nats-Expected-Stream': 'ORDERS',
      'nats-rollup': 'all',
      traceparent: 't',
      type: 'x',
    };
    parts.send('x', 1, 1, headers);
    await parts.clock.advance(1_000);
    expect(headers).toEqual({ traceparent: 't', type: 'x', id: 'm' });
    expect(parts.kept).toHaveLength(1);
  });

  test.each(['id', 'ce-id'])('keeps the %s of a dead letter', async (name) => {
    const parts = await consuming();
    const headers: Record<string, string> = { 'Nats-Msg-Id': 'm', [name]: 'own' };
    parts.send('x', 1, 1, headers);
    await parts.clock.advance(1_000);
    expect(headers).toEqual({ [name]: 'own' });
  });

  test('runs ten messages at a time, and requests no more', async () => {
    const { opened, open } = gate();
    const { handler, events } = counting(() => opened);
    const parts = await consuming(handler);
    for (let n = 1; n <= 12; n += 1) parts.send(await envelopeText(parts, n), n);
    await parts.idle();
    expect(events).toHaveLength(10);
    expect(parts.consumed).toMatchObject([{ max_messages: 10 }]);
    open();
    await parts.idle();
    expect(events).toHaveLength(12);
    expect(parts.told).toHaveLength(12);
  });

  test('runs others while retries wait', async () => {
    const { handler, events } = counting(async ({ data }) => {
      if ((data as { n: number }).n <= 2) throw new RetryLater(45_000);
    });
    const parts = await consuming(handler, {}, 1);
    for (let n = 1; n <= 4; n += 1) parts.send(await envelopeText(parts, n), n);
    await parts.idle();
    expect(events).toHaveLength(4);
    expect(parts.told).toEqual(['nak 1 45000', 'nak 2 45000', 'ack 3', 'ack 4']);
  });

  test.each([0, -1, 2.5, Number.NaN, Number.POSITIVE_INFINITY])(
    'refuses a concurrency of %s',
    async (concurrency) => {
      await expect(consuming(counting().handler, {}, concurrency)).rejects.toMatchObject({
        code: 'BAD_ARGUMENT',
        message: expect.stringMatching(/^consumeJetStream: concurrency is .+ whole number from 1/),
      });
    },
  );

  test('asks the client to end when the consumer or its stream is gone', async () => {
    const parts = await consuming();
    expect(parts.consumed).toMatchObject([{ abort_on_missing_resource: true, expires: 5_000 }]);
  });

  test('delivers a retry again after its delay', async () => {
    const parts = await consuming(failing(() => new RetryLater(45_000)));
    parts.send(await envelopeText(parts), 7);
    await parts.idle();
    expect(parts.told).toEqual(['nak 7 45000']);
  });

  test.each([
    [{ ack_policy: 'none' }, 'ack_policy "none"'],
    [{ max_deliver: 5 }, 'max_deliver 5'],
  ])('refuses a consumer with %j, with which messages are lost', async (config, problem) => {
    await expect(consuming(counting().handler, config)).rejects.toThrow(problem);
    await expect(consuming(counting().handler, config)).rejects.toMatchObject({ code: 'BAD_ARGUMENT' });
  });

  test('accepts a consumer with defaults', async () => {
    const { loop } = await consuming(counting().handler, { ack_wait: undefined, max_deliver: -1 });
    await loop.stop();
  });

  test('stops after the handlers that run; a message that waited is given back at once', async () => {
    const { opened, open } = gate();
    const parts = await consuming(counting(() => opened).handler, {}, 1);
    parts.send(await envelopeText(parts), 1);
    parts.send('x', 2);
    await parts.idle();
    let stopped = false;
    const stop = parts.loop.stop().then(() => {
      stopped = true;
    });
    await parts.idle();
    expect(stopped).toBe(false);
    expect(parts.told).toEqual(['nak 2 undefined']);
    open();
    await parts.through(stop);
    await parts.loop.ended;
    expect(parts.told).toEqual(['nak 2 undefined', 'ack 1']);
  });

  test('ends the process by an unhandled rejection when it fails and its end is not awaited', async () => {
    const parts = await consuming();
    const listeners = process.listeners('unhandledRejection');
    process.removeAllListeners('unhandledRejection');
    const unhandled: unknown[] = [];
    process.on('unhandledRejection', (error) => unhandled.push(error));
    parts.messages.fail(new Error('gone'));
    await parts.clock.advance(30_000);
    await parts.idle();
    await nextTurn();
    process.removeAllListeners('unhandledRejection');
    for (const listener of listeners) process.on('unhandledRejection', listener);
    expect(unhandled).toMatchObject([{ code: 'SOURCE_CLOSED' }]);
  });

  test.each([
    ['ends', (parts: Awaited<ReturnType<typeof consuming>>) => void parts.messages.close()],
    ['fails', (parts: Awaited<ReturnType<typeof consuming>>) => parts.messages.fail(new Error('gone'))],
  ])('fails when its source %s, after the handlers that run', async (_how, end) => {
    const { opened, open } = gate();
    const parts = await consuming(counting(() => opened).handler);
    parts.send(await envelopeText(parts), 1);
    await parts.idle();
    const failed = expect(parts.loop.ended).rejects.toMatchObject({ code: 'SOURCE_CLOSED' });
    end(parts);
    await parts.idle();
    open();
    await parts.through(failed);
    expect(parts.told).toEqual(['ack 1']);
  });

  test('refuses handlers that cannot be used before it receives', async () => {
    const { handler } = counting();
    await expect(consuming([handler, handler] as never)).rejects.toMatchObject({ code: 'BAD_CONSUMER' });
  });

  test('a fault of the inbox itself ends the loop', async () => {
    const parts = sourceRig();
    const double = jetStreamDouble();
    const inbox = { ...parts.inbox, process: () => Promise.reject(new Error('a bug')) };
    const options = {
      consumer: double.consumer,
      inbox,
      handler: counting().handler,
      deadLetter: async () => {},
    };
    const loop = await consumeJetStream(options);
    double.send('x');
    await expect(loop.ended).rejects.toThrow('a bug');
    expect(double.told).toEqual([]);
  });
});

describe('RabbitMQ', () => {
  async function consuming(
    handler = counting().handler,
    deadLetter?: (letter: unknown) => Promise<unknown>,
    retryQueue?: string,
    stores?: () => 'stored' | 'returned' | 'refused' | 'blocked',
    changed: Parameters<typeof rabbitDouble>[1] = {},
  ) {
    const parts = sourceRig();
    const double = rabbitDouble(stores, changed);
    const { inbox, clock } = parts;
    const loop = await consumeRabbit({
      connection: double.connection,
      queue: 'payments',
      retryQueue,
      inbox,
      handler,
      deadLetter,
      clock,
    });
    return { ...parts, ...double, loop };
  }

  test('acknowledges what is done and a duplicate', async () => {
    const parts = await consuming();
    const body = await envelopeText(parts);
    parts.send(body, 'a');
    await parts.idle();
    parts.send(body, 'b', {}, true);
    await parts.idle();
    expect(parts.told).toEqual(['prefetch 10', 'consume payments', 'ack a', 'ack b']);
  });

  test('a retry that a blocked broker does not confirm within 30 seconds is requeued', async () => {
    const parts = await consuming(
      failing(() => new RetryLater(5_000)),
      undefined,
      'waits',
      () => 'blocked',
    );
    parts.send(await envelopeText(parts), 'a');
    await parts.idle();
    await parts.clock.advance(29_000);
    await parts.idle();
    expect(parts.told.slice(3)).toEqual(['copy waits']);
    await parts.clock.advance(2_000);
    await parts.idle();
    await parts.clock.advance(10_000);
    await parts.idle();
    expect(parts.told.slice(3)).toEqual(['copy waits', 'nack a false true']);
  });

  test('holds a retry until it is due, and requeues it', async () => {
    const parts = await consuming(failing(() => new RetryLater(300_000)));
    parts.send(await envelopeText(parts), 'a');
    await parts.idle();
    await parts.clock.advance(298_000);
    expect(parts.told).toEqual(['prefetch 10', 'consume payments']);
    await parts.clock.advance(3_000);
    expect(parts.told).toEqual(['prefetch 10', 'consume payments', 'nack a false true']);
  });

  test('requeues a retry before RabbitMQ closes the channel', async () => {
    const parts = await consuming(failing(() => new RetryLater(10 * 3_600_000)));
    parts.send(await envelopeText(parts), 'a');
    await parts.clock.advance(21 * 60_000);
    expect(parts.told).toContain('nack a false true');
  });

  test('refuses a rejected message, which goes to the dead-letter exchange', async () => {
    const parts = await consuming();
    parts.send('x', 'a');
    await parts.idle();
    expect(parts.told).toEqual(['prefetch 10', 'consume payments', 'nack a false false']);
  });

  test('acknowledges a rejected message once it is kept', async () => {
    const kept: unknown[] = [];
    const parts = await consuming(counting().handler, async (letter) => kept.push(letter));
    parts.send('x', 'a');
    await parts.idle();
    expect(parts.told).toEqual(['prefetch 10', 'consume payments', 'ack a']);
    expect(kept).toMatchObject([
      { id: 'worker/a/0', reason: { code: 'UNREADABLE_MESSAGE' }, message: { fields: {} } },
    ]);
  });

  test('opens its channel for ten messages at a time, and survives an error of the connection', async () => {
    const parts = await consuming();
    expect(parts.told).toEqual(['prefetch 10', 'consume payments']);
    const failed = expect(parts.loop.ended).rejects.toMatchObject({
      code: 'SOURCE_CLOSED',
      cause: { message: 'ECONNRESET' },
    });
    parts.ofConnection.emit('error', new Error('ECONNRESET'));
    await failed;
  });

  describe('with a retry queue', () => {
    const later = () => failing(() => new RetryLater(300_000));

    test('a retry waits there, and gives its place back once the broker has the copy', async () => {
      const parts = await consuming(later(), undefined, 'retries');
      const headers = {
        CC: ['other'],
        'x-delivery-count': 2,
        'x-death': [{ queue: 'payments', count: 1 }],
        kept: 'x',
      };
      parts.send(await envelopeText(parts), 'a', { headers, timestamp: 5, type: 't' });
      await parts.idle();
      expect(parts.told.slice(1)).toEqual(['assert retries', 'consume payments', 'copy retries', 'ack a']);
      expect(parts.copies).toMatchObject([
        {
          queue: 'retries',
          options: {
            messageId: 'a',
            timestamp: 5,
            type: 't',
            mandatory: true,
            persistent: true,
            expiration: '10000',
          },
        },
      ]);
      const [{ options } = { options: {} }] = parts.copies;
      expect((options as { headers: object }).headers).toEqual({
        kept: 'x',
        'mailroom-deaths': 1,
        'mailroom-receives': 3,
        'mailroom-copy': 1,
      });
    });

    test.each(['returned', 'refused'] as const)(
      'a retry whose copy is %s is held instead',
      async (answer) => {
        const parts = await consuming(later(), undefined, 'retries', () => answer);
        parts.send(await envelopeText(parts), 'a');
        await parts.idle();
        expect(parts.told.slice(3)).toEqual(['copy retries']);
        await parts.clock.advance(301_000);
        expect(parts.told.slice(4)).toEqual(['nack a false true']);
      },
    );

    test('a retry that cannot be copied, e.g. with headers above 64 KB, is held instead and does not end the loop', async () => {
      const parts = await consuming(later(), undefined, 'retries', () => {
        throw new RangeError('Encoded field table exceeds the 65536 byte encoding buffer');
      });
      parts.send(await envelopeText(parts), 'a');
      await parts.idle();
      await parts.clock.advance(301_000);
      expect(parts.told.slice(3)).toEqual(['nack a false true']);
    });

    test('a copy has the id and the receives of its message; a dead letter that returns has another id', () => {
      const id = (headers: object) =>
        rabbitId({ messageId: 'm', headers: headers as never }, Buffer.from('x'), 'retries');
      const waited = { queue: 'retries', count: 4 };
      const copy = { 'mailroom-deaths': 1, 'mailroom-receives': 3, 'x-death': [waited] };
      expect(id(copy)).toBe('m/1');
      expect(receivesOf(copy, false, 'retries')).toBe(4);
      const redriven = { ...copy, 'x-death': [waited, { queue: 'payments', count: 1 }] };
      expect(id(redriven)).toBe('m/2');
      expect(receivesOf(redriven, false, 'retries')).toBe(1);
    });
  });

  test('a queue that does not exist is an error of the call only, not an unhandled rejection, too', async () => {
    const { inbox, clock } = sourceRig();
    const { connection, ofChannel } = rabbitDouble();
    const unhandled: unknown[] = [];
    const listener = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', listener);
    const missing = new Error('404 NOT-FOUND');
    const createConfirmChannel = async () => ({
      ...(await connection.createConfirmChannel()),
      consume: async () => {
        ofChannel.emit('error', missing);
        throw missing;
      },
    });
    const started = consumeRabbit({
      connection: { ...connection, createConfirmChannel },
      queue: 'q',
      inbox,
      handler: counting().handler,
      clock,
    });
    await expect(started).rejects.toBe(missing);
    await clock.advance(30_000);
    await nextTurn();
    process.off('unhandledRejection', listener);
    expect(unhandled).toEqual([]);
  });

  test.each([0, -1, 1.5, 65_536])('a concurrency of %s is refused', async (concurrency) => {
    const { connection } = rabbitDouble();
    const { inbox } = sourceRig();
    const started = consumeRabbit({
      connection,
      queue: 'q',
      inbox,
      handler: counting().handler,
      concurrency,
    });
    await expect(started).rejects.toThrow(/^consumeRabbit: concurrency is .+ whole number from 1 to 65,535/);
  });

  test('stops although its broker does not answer', async () => {
    const parts = await consuming(
      failing(() => new RetryLater(600_000)),
      undefined,
      undefined,
      undefined,
      {
        cancel: () => new Promise(() => {}),
      },
    );
    parts.send(await envelopeText(parts), 'a');
    await parts.idle();
    const stop = parts.loop.stop();
    await parts.clock.advance(3_000);
    expect(parts.told.slice(2)).toEqual(['nack a false true']);
    await stop;
  });

  test('stops within 25 seconds, whatever its handlers do', async () => {
    const { opened, open } = gate();
    const parts = await consuming(counting(() => opened).handler);
    parts.send(await envelopeText(parts), 'a');
    await parts.idle();
    let isStopped = false;
    const stop = parts.loop.stop().then(() => {
      isStopped = true;
    });
    await parts.clock.advance(21_000);
    expect(isStopped).toBe(false);
    await parts.clock.advance(4_000);
    await stop;
    expect(parts.told).not.toContain('ack a');
    open();
    await parts.idle();
  });

  test('stops: it cancels, drains handlers, and requeues what it holds', async () => {
    const { opened, open } = gate();
    const parts = await consuming(
      counting(async ({ data }) => {
        if ((data as { n: number }).n === 1) await opened;
        else throw new RetryLater(600_000);
      }).handler,
    );
    parts.send(await envelopeText(parts, 1), 'a');
    parts.send(await envelopeText(parts, 2), 'b');
    await parts.idle();
    const stop = parts.loop.stop();
    await parts.idle();
    expect(parts.told.slice(2)).toEqual(['cancel tag', 'nack b false true']);
    open();
    await parts.through(stop);
    expect(parts.told.slice(4)).toEqual(['ack a']);
    await parts.loop.ended;
    await parts.loop.stop();
  });

  test.each([
    [
      'its channel is closed with an error',
      (parts: ReturnType<typeof rabbitDouble>) => parts.ofChannel.emit('error', new Error('406')),
    ],
    ['its channel is closed', (parts: ReturnType<typeof rabbitDouble>) => parts.ofChannel.emit('close')],
    ['its queue is deleted', (parts: ReturnType<typeof rabbitDouble>) => parts.cancelled()],
  ])('fails when %s, so that the process is started again', async (_what, end) => {
    const parts = await consuming();
    const failed = expect(parts.loop.ended).rejects.toMatchObject({ code: 'SOURCE_CLOSED' });
    end(parts);
    await failed;
  });

  test('a message that comes back from the dead-letter queue has another id, a requeued one has not', () => {
    const body = Buffer.from('x');
    const of = (headers?: object, messageId: string | undefined = 'm') =>
      rabbitId({ messageId, headers } as never, body);
    expect(of()).toBe('m/0');
    expect(of({ 'x-delivery-count': 3 })).toBe('m/0');
    expect(of({ 'x-death': [{ count: 2 }, { count: 1 }] })).toBe('m/3');
    expect(rabbitId({}, body)).toBe(rabbitId({ messageId: '' }, body));
    expect(rabbitId({}, body)).not.toBe(rabbitId({}, Buffer.from('y')));
  });

  test('a quorum queue counts deliveries; another one tells whether there were any', () => {
    expect(receivesOf({ 'x-delivery-count': 4 }, true)).toBe(5);
    expect(receivesOf({}, true)).toBe(2);
    expect(receivesOf(undefined, false)).toBe(1);
  });
});
