import { describe, expect, test, vi } from 'vitest';
import { leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { AlreadyProcessed } from '../../../../lambdas/runtime/errors.ts';
import type { Envelope } from '../../../../lambdas/runtime/event.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { consumer, inboxRow, pointer, send } from './consumer-rig.ts';

describe('a leased handler', () => {
  test('a message whose handler throws is retried after a backoff, with one attempt more', async () => {
    const parts = rig();
    const attempts: number[] = [];
    const { drain, deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        attempts.push(ctx.attempt);
        if (ctx.attempt < 3) throw new Error('bank answered 503');
      }),
    ]);
    const event = send(parts);
    await deliver();
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'FAILED',
      attempts: 1,
      lastError: 'bank answered 503',
      fingerprint: 'worker Error: bank answered #',
    });
    expect(inboxRow(parts, event)).not.toHaveProperty('expiresAt');
    await drain();
    expect(attempts).toEqual([1, 2, 3]);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('a message whose attempts are exhausted is rejected, and SQS moves it to the dead-letter queue', async () => {
    const parts = rig();
    const handle = vi.fn(async () => {
      throw new Error('never');
    });
    const event = send(parts);
    await consumer(parts, [leased(ThingHappened, handle)]).drain();
    expect(handle).toHaveBeenCalledTimes(3);
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'REJECTED',
      reason: 'ATTEMPTS_SPENT',
      attempts: 3,
    });
    expect(inboxRow(parts, event)?.lastError).toContain('Error: never');
    expect(pointer(parts, event)).toMatchObject({ reason: 'ATTEMPTS_SPENT' });
    expect(parts.queue.deadLetters()).toHaveLength(1);
  });

  test.each([
    [1, 'Rejected after 1 attempt. Error: never'],
    [2, 'Rejected after 2 attempts. Error: never'],
  ])('a message is rejected with the number of its attempts: %i', async (maxAttempts, lastError) => {
    const parts = rig();
    const fail = leased(ThingHappened, async () => {
      throw new Error('never');
    });
    const event = send(parts);
    await consumer(parts, [fail], parts.table, { maxAttempts }).drain();
    expect(inboxRow(parts, event)?.lastError).toBe(lastError);
  });

  test('a message whose handler throws AlreadyProcessed is processed; a downstream 409 or 422 is a failure', async () => {
    const parts = rig();
    const one = send(parts, { data: { n: 1 } });
    const two = send(parts, { data: { n: 2 } });
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (event) => {
        if (event.data.n === 1) throw new AlreadyProcessed('imported');
        throw Object.assign(new Error('downstream'), { statusCode: 422, status: 409 });
      }),
    ]);
    await deliver();
    expect(inboxRow(parts, one)).toMatchObject({ status: 'PROCESSED' });
    expect(inboxRow(parts, two)).toMatchObject({ status: 'FAILED' });
  });

  test.each([[null], [undefined], ['a text'], [{ message: 7 }]])(
    'a message whose handler throws %j fails alone',
    async (thrown) => {
      for (const kind of [leased, transactional]) {
        const parts = rig();
        const bad = send(parts, { data: { n: 1 } });
        const good = send(parts, { data: { n: 2 } });
        const { deliver } = consumer(parts, [
          kind(ThingHappened, async (event: Envelope<string, { n: number }>) => {
            if (event.data.n === 1) throw thrown;
            return {};
          }),
        ]);
        await expect(deliver()).resolves.toMatchObject({ failed: [expect.any(String)] });
        expect(inboxRow(parts, good)).toMatchObject({ status: 'PROCESSED' });
        expect(inboxRow(parts, bad)?.status).not.toBe('PROCESSED');
      }
    },
  );
});

test('a table that does not answer fails the message, not the batch, and it is redelivered', async () => {
  const parts = rig();
  const event = send(parts);
  const broken = { ...parts.memory, write: () => Promise.reject(new Error('connect ECONNREFUSED')) };
  const handle = vi.fn();
  await expect(consumer(parts, [leased(ThingHappened, handle)], broken).deliver()).resolves.toMatchObject({
    failed: [expect.any(String)],
  });
  expect(handle).not.toHaveBeenCalled();
  expect(parts.queue.messages()[0]?.visibleAt).toBeGreaterThan(parts.clock.now());
  await consumer(parts, [leased(ThingHappened, handle)]).drain();
  expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
});
