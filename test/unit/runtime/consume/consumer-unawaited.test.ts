import { describe, expect, test, vi } from 'vitest';
import { type LeasedContext, leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { AlreadyProcessed, errorCode } from '../../../../lambdas/runtime/errors.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { CONSUMER, consumer, domainRow, inboxRow, leaveEffect, send } from './consumer-rig.ts';

describe('a leased handler that does not await', () => {
  test('a commit that is refused fails: its message is not processed without its writes', async () => {
    const parts = rig();
    await parts.memory.write({ Put: { Item: { PK: 'THING#1', SK: 'THING' } } });
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        void ctx.commit({ writes: [domainRow] });
      }),
    ]);
    const event = send(parts);
    await deliver();
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'FAILED',
      lastError: expect.stringContaining('ConditionalCheckFailed'),
    });
  });

  test('a commit of an event that is not valid fails', async () => {
    const parts = rig();
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        void ctx.commit({ events: [ThingHappened.create({ aggregateId: '', data: { n: 1 } })] });
      }),
    ]);
    const event = send(parts);
    await deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED' });
  });

  test('an effect that fails fails', async () => {
    const parts = rig();
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        void ctx.once('charge', async () => {
          throw new Error('the bank is closed');
        });
      }),
    ]);
    const event = send(parts);
    await deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', lastError: 'the bank is closed' });
  });

  test('a commit that succeeds is processed', async () => {
    const parts = rig();
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        void ctx.commit({ writes: [domainRow] });
      }),
    ]);
    const event = send(parts);
    await deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('but has looked at the failure decides for itself', async () => {
    const parts = rig();
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await ctx
          .once('ping', async () => {
            throw new Error('the provider is gone');
          })
          .catch(() => {});
      }),
    ]);
    const event = send(parts);
    await deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });
});

/** An effect that fails. */
const closed = async (): Promise<never> => {
  throw new Error('the bank is closed');
};
const turn = () => new Promise((resolve) => setImmediate(resolve));
const invalid = ThingHappened.create({ aggregateId: '', data: { n: 1 } });

/** What becomes of a message whose handler does this, and what is logged as an error. */
async function outcomeOf(handle: (ctx: LeasedContext) => Promise<unknown>) {
  const parts = rig();
  const { deliver } = consumer(parts, [leased(ThingHappened, async (_event, ctx) => handle(ctx))]);
  const event = send(parts);
  await deliver();
  await turn();
  const errors = () => parts.telemetry.lines().filter(({ level }) => level === 'error');
  return { parts, event, row: inboxRow(parts, event), errors };
}

describe('un-awaited work fails its message, without an unhandled rejection,', () => {
  const leftAlone: [string, (ctx: LeasedContext) => unknown][] = [
    ['when its success is chained to', (ctx) => ctx.once('charge', closed).then(() => {})],
    ['when something is to happen finally', (ctx) => ctx.once('charge', closed).finally(() => {})],
    ['when the chain itself fails', (ctx) => ctx.once('charge', async () => 1).then(closed)],
    [
      'when a commit at the end of a chain fails',
      (ctx) => ctx.once('charge', async () => 1).then(() => ctx.commit({ events: [invalid] })),
    ],
    [
      'when one of two chains has a catch',
      (ctx) => {
        const charge = ctx.once('charge', closed);
        charge.catch(() => {});
        return charge.then(() => {});
      },
    ],
  ];

  test.each(leftAlone)('%s', async (_when, begin) => {
    const { row } = await outcomeOf(async (ctx) => {
      begin(ctx);
    });
    expect(row).toMatchObject({ status: 'FAILED', attempts: 1 });
  });

  test('also when the handler reports its event as already processed', async () => {
    const { row } = await outcomeOf(async (ctx) => {
      void ctx.once('charge', closed);
      throw new AlreadyProcessed('charged before');
    });
    expect(row).toMatchObject({ status: 'FAILED', lastError: 'the bank is closed' });
  });

  test('also when another un-awaited call reports it as already processed', async () => {
    const { row } = await outcomeOf(async (ctx) => {
      void ctx.once('look', async () => {
        throw new AlreadyProcessed('charged before');
      });
      void ctx.once('charge', async () => {
        await turn();
        return closed();
      });
    });
    expect(row).toMatchObject({ status: 'FAILED', lastError: 'the bank is closed' });
  });
});

test('a lone un-awaited effect that reports the event as already processed settles the message', async () => {
  const { row } = await outcomeOf(async (ctx) => {
    void ctx.once('look', async () => {
      throw new AlreadyProcessed('charged before');
    });
  });
  expect(row).toMatchObject({ status: 'PROCESSED' });
});

test('an effect that begins after its handler has returned is refused, which is logged once', async () => {
  const parts = rig();
  let ran = false;
  const handler = leased(ThingHappened, async (_event, ctx) => {
    void parts.clock.sleep(5_000).then(() => {
      void ctx.once('charge', async () => {
        ran = true;
      });
    });
  });
  send(parts);
  await consumer(parts, [handler]).deliver();
  await parts.clock.advance(6_000);
  await turn();
  expect(ran).toBe(false);
  expect(parts.telemetry.lines()).toEqual([
    expect.objectContaining({
      message: expect.stringContaining('ctx.once("charge") after its handler had returned'),
    }),
  ]);
});

describe('a failure that is observed late or never', () => {
  test('is for the handler to judge when it awaits the call after it failed', async () => {
    const { row } = await outcomeOf(async (ctx) => {
      const charge = ctx.once('charge', closed);
      await turn();
      return charge.catch(() => 'not charged');
    });
    expect(row).toMatchObject({ status: 'PROCESSED', result: '"not charged"' });
  });

  test('is logged when a commit has settled the message', async () => {
    const { row, errors } = await outcomeOf(async (ctx) => {
      void ctx.commit({ events: [invalid] });
      await turn();
      await ctx.commit({ writes: [domainRow] });
    });
    expect(row).toMatchObject({ status: 'PROCESSED' });
    expect(errors()).toEqual([
      expect.objectContaining({
        message: 'A call that a handler did not await has failed',
        extra: expect.objectContaining({ error: expect.objectContaining({ code: 'INVALID_EVENT' }) }),
      }),
    ]);
  });

  test('is logged when it comes after the message is settled', async () => {
    let fail: (error: Error) => void = () => {};
    const later = new Promise<never>((_resolve, reject) => {
      fail = reject;
    });
    const { row, errors } = await outcomeOf(async (ctx) => {
      void ctx.once('charge', async () => 1).then(() => later);
    });
    expect(row).toMatchObject({ status: 'PROCESSED' });
    expect(errors()).toEqual([]);
    fail(new Error('too late'));
    await turn();
    expect(errors().map(({ message }) => message)).toEqual([
      'A call that a handler did not await has failed',
    ]);
  });

  test('leaves the message to wait, without an attempt, when the effect may still run elsewhere', async () => {
    const parts = rig();
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        void ctx.once('charge', async () => 1).then(() => {});
      }),
    ]);
    const event = send(parts);
    await leaveEffect(parts, event, { endsBy: parts.clock.now() + 60_000 });
    await deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(parts.telemetry.counted('MessagesFailed')).toBe(0);
  });

  test('writes nothing when the message belongs to another worker by now', async () => {
    const parts = rig();
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (event, ctx) => {
        const Key = parts.memory.item({ PK: `INBOX#${CONSUMER}#${event.eventId}`, SK: 'MESSAGE' });
        await parts.memory.write({
          Put: { Item: { ...Key, PK: String(Key?.PK), SK: 'MESSAGE', fence: 'another' } },
        });
        void ctx.once('charge', async () => 1);
      }),
    ]);
    const event = send(parts);
    await deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSING', fence: 'another' });
    expect(parts.telemetry.counted('FenceRefused')).toBe(1);
  });
});

test('an effect is running or has run: no moment in between lets its name run twice', async () => {
  const codes: string[] = [];
  const { row } = await outcomeOf(async (ctx) => {
    const first = ctx.once('charge', async () => 1);
    // Once in each microtask.
    while (!codes.includes('EFFECT_REPEATED') && codes.length < 1_000) {
      const second = ctx.once('charge', async () => 2);
      void second.then(() => codes.push('again')).catch((error: unknown) => codes.push(errorCode(error)));
      await null;
    }
    return first;
  });
  expect([...new Set(codes)]).toEqual(['EFFECT_RUNNING', 'EFFECT_REPEATED']);
  expect(row?.result).toBe('1');
});

test('code that waits for an un-awaited effect may commit some steps later', async () => {
  const { row, parts } = await outcomeOf(async (ctx) => {
    const charge = ctx.once('charge', async () => 1);
    void (async () => {
      await charge;
      for (let step = 0; step < 50; step += 1) await null;
      await ctx.commit({ writes: [domainRow] });
    })();
  });
  expect(row).toMatchObject({ status: 'PROCESSED', commitId: expect.any(String) });
  expect(parts.memory.item({ PK: 'THING#1', SK: 'THING' })).toBeDefined();
});

test.each(Array.from({ length: 12 }, (_, steps) => [steps]))(
  'an effect that begins %d steps after the last look at what runs is waited for, or refused',
  async (steps) => {
    const parts = rig();
    let running = 0;
    let begin: (() => Promise<unknown>) | undefined;
    const sleep = parts.clock.sleep.bind(parts.clock);
    vi.spyOn(parts.clock, 'sleep').mockImplementation((ms, signal) => {
      const slept = sleep(ms, signal);
      if (ms === 0 && begin !== undefined) void slept.then(begin);
      return slept;
    });
    const handler = leased(ThingHappened, async (_event, ctx) => {
      begin = async () => {
        begin = undefined;
        for (let step = 0; step < steps; step += 1) await null;
        const charge = ctx.once('charge', async () => {
          running += 1;
          await parts.clock.sleep(1_000);
          running -= 1;
        });
        await charge.catch(() => {});
      };
    });
    send(parts);
    await consumer(parts, [handler]).deliver();
    expect(begin).toBeUndefined();
    expect(running).toBe(0);
  },
);
