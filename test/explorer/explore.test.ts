import { describe, expect, it } from 'vitest';
import { transactionalBatch } from '../../lambdas/runtime/consume/batch-handler.ts';
import { type LeasedContext, leased, transactional } from '../../lambdas/runtime/consume/handler.ts';
import { type ObservedDeps, observed } from '../../testing/explorer/observed-handler.ts';
import { type ExploredParts, explore, type MemoryTable, memoryTable } from '../../testing/index.ts';
import { ThingHappened } from '../support/runtime-rig.ts';

const COUNTER = { PK: 'COUNTER#1', SK: 'COUNTER' };
const ADD_ONE = {
  Update: { Key: COUNTER, UpdateExpression: 'ADD n :one', ExpressionAttributeValues: { ':one': 1 } },
};
const event = ThingHappened.create({ aggregateId: 'thing-1', data: { n: 1 } });

describe('explore', () => {
  it('passes a handler that puts its writes into its commit', async () => {
    const handler = leased(ThingHappened, async (_event, ctx) => ctx.commit({ writes: [ADD_ONE] }));
    const report = await explore(handler, {
      event,
      check: (table) => expect(table.item(COUNTER)).toMatchObject({ n: 1 }),
    });
    expect(report.schedules).toBeGreaterThan(50);
    expect(report.crashPoints).toBeGreaterThan(5);
  });

  it('passes a transactional handler that reads before it writes', async () => {
    await explore(
      ({ table }) =>
        transactional(ThingHappened, async () => {
          const n = Number((await table.get(COUNTER))?.n);
          return {
            writes: [
              {
                Update: {
                  ...ADD_ONE.Update,
                  ConditionExpression: 'n = :read',
                  ExpressionAttributeValues: { ':one': 1, ':read': n },
                },
              },
            ],
          };
        }),
      {
        event,
        items: [{ ...COUNTER, n: 41 }],
        check: (table) => expect(table.item(COUNTER)).toMatchObject({ n: 42 }),
      },
    );
  });

  it('passes a batch handler whose writes fit any set of its events, and finds one that counts its batches', async () => {
    const counting = (amountOf: (events: readonly unknown[]) => number) =>
      explore(
        transactionalBatch(ThingHappened, async (events) => ({
          writes: [
            {
              Update: {
                ...ADD_ONE.Update,
                ExpressionAttributeValues: { ':one': amountOf(events) },
              },
            },
          ],
        })),
        {
          event,
          others: [ThingHappened.create({ aggregateId: 'thing-2', data: { n: 2 } })],
          check: (table) => expect(table.item(COUNTER)).toMatchObject({ n: 2 }),
        },
      );
    await expect(counting((events) => events.length)).resolves.toMatchObject({
      crashPoints: expect.any(Number),
    });
    // Right as long as both come together.
    await expect(counting(() => 2)).rejects.toMatchObject({ code: 'SCHEDULE_BROKEN' });
  });

  it('refuses more events than a batch has, of which it would make several', async () => {
    const others = Array.from({ length: 10 }, () => event);
    const handler = transactionalBatch(ThingHappened, async () => ({}));
    await expect(explore(handler, { event, others, check: () => {} })).rejects.toMatchObject({
      code: 'BAD_ARGUMENT',
      message: expect.stringContaining('others has 10 events'),
    });
  });

  it('sees that a batch handler receives an event that was rejected', async () => {
    const violations: string[] = [];
    const seen = observed(
      transactionalBatch(ThingHappened, async () => ({})),
      {
        memory: memoryTable(),
        consumer: 'worker',
        messageIds: new Map([['event-2', 'message-2']]),
        log: { rejectedIds: new Set(['message-2']), happened: new Map(), running: new Map() },
        violate: (what) => void violations.push(what),
      } as Partial<ObservedDeps> as ObservedDeps,
    );
    const events = ['event-1', 'event-2'].map((eventId) => ({ eventId }));
    if (seen.kind === 'transactional') await seen.handleBatch?.(events as never, {} as never);
    expect(violations).toEqual(['A message that was rejected is run again']);
  });

  it('finds a double charge at a provider that does not receive its idempotency key', async () => {
    const charges = (honest: boolean) =>
      explore(
        (_parts, bank) =>
          leased(ThingHappened, async (_event, ctx) => {
            await ctx.once('charge', async (idempotencyKey) => {
              bank.add(honest ? idempotencyKey : `charge ${bank.size}`);
            });
          }),
        {
          event,
          deviations: 2,
          world: () => new Set<string>(),
          check: (_table, bank) => expect(bank.size).toBe(1),
        },
      );
    await expect(charges(true)).resolves.toMatchObject({ crashPoints: expect.any(Number) });
    await expect(charges(false)).rejects.toThrow(/effect "charge"[\s\S]*effect "charge"/);
  });

  it('explores each effect of ctx.onceEach as one of ctx.once', async () => {
    const ships = (honest: boolean) =>
      explore(
        (_parts, carrier) =>
          leased(ThingHappened, async (_event, ctx) => {
            await ctx.onceEach('ship', ['a', 'b'], async (sku, idempotencyKey) => {
              carrier.add(honest ? idempotencyKey : `${sku} ${carrier.size}`);
            });
          }),
        {
          event,
          deviations: 2,
          world: () => new Set<string>(),
          check: (_table, carrier) => expect(carrier.size).toBe(2),
        },
      );
    await expect(ships(true)).resolves.toMatchObject({ crashPoints: expect.any(Number) });
    await expect(ships(false)).rejects.toThrow(/effect "ship\.[ab]"[\s\S]*effect "ship\.[ab]"/);
  });

  it('finds the schedule in which a write outside the commit is made twice, and its seed replays it', async () => {
    const handler = ({ table }: ExploredParts) =>
      leased(ThingHappened, async () => {
        await table.write(ADD_ONE);
      });
    const check = (table: MemoryTable) => expect(table.item(COUNTER)).toMatchObject({ n: 1 });
    const failure = await explore(handler, { event, check }).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({ code: 'SCHEDULE_BROKEN' });
    const { message } = failure as Error;
    expect(message).toMatch(/worker 1 +update COUNTER#1 COUNTER/);
    const seed = /seed: '([^']+)'/.exec(message)?.[1];
    await expect(explore(handler, { event, check, seed })).rejects.toMatchObject({
      code: 'SCHEDULE_BROKEN',
    });
    await expect(explore(handler, { event, check, seed: '0' })).resolves.toEqual({
      schedules: 1,
      crashPoints: 0,
    });
  });

  it.for<[string, (ctx: LeasedContext, made: { n: number }) => string]>([
    ['the attempt', (ctx) => `charge-${ctx.attempt}`],
    [
      'a counter',
      (_ctx, made) => {
        made.n += 1;
        return `charge-${made.n}`;
      },
    ],
  ])('finds an effect that is named by %s, and says how to name it', async ([, nameOf]) => {
    const failure = explore(
      (_parts, made) =>
        leased(ThingHappened, async (_event, ctx) => {
          await ctx.once(nameOf(ctx, made), async () => 'charged');
          if (ctx.attempt === 1) throw new Error('the provider is down'); // after a crash, an attempt keeps its number
        }),
      { event, world: () => ({ n: 0 }), check: () => {} },
    );
    await expect(failure).rejects.toMatchObject({ code: 'SCHEDULE_BROKEN' });
    await expect(failure).rejects.toThrow(
      /requested "charge-2" and never requested "charge-1"[\s\S]*never by a time/,
    );
  });

  it('distinguishes schedules by the state of the world: here, a charge that was started and never captured', async () => {
    class Bank {
      readonly charges = new Map<string, { captured: boolean }>();
    }
    const failure = explore(
      ({ table }, bank) =>
        leased(ThingHappened, async ({ eventId }) => {
          if (bank.charges.has(eventId)) return; // begun by an earlier attempt, which may have died before the capture
          const charge = { captured: false };
          bank.charges.set(eventId, charge);
          await table.get(COUNTER).catch(() => undefined);
          charge.captured = true;
        }),
      {
        event,
        world: () => new Bank(),
        check: (_table, bank) => expect([...bank.charges.values()]).toEqual([{ captured: true }]),
      },
    );
    await expect(failure).rejects.toMatchObject({ code: 'SCHEDULE_BROKEN' });
    await expect(failure).rejects.toThrow('get COUNTER#1 COUNTER -> crash before it');
  });

  it('finds a handler that trusts an eventually consistent read, and passes one that reads strongly', async () => {
    const SEEN = { PK: 'SEEN#1', SK: 'SEEN' };
    const readsBack = (consistent: boolean) =>
      explore(
        ({ table }) =>
          leased(ThingHappened, async (_event, ctx) => {
            await table.write({ Put: { Item: SEEN } });
            const seen = (await table.get(SEEN, { consistent })) !== undefined;
            await ctx.commit({ writes: [{ Put: { Item: { ...COUNTER, seen } } }] });
          }),
        { event, deviations: 2, check: (table) => expect(table.item(COUNTER)).toMatchObject({ seen: true }) },
      );
    await expect(readsBack(true)).resolves.toMatchObject({ crashPoints: expect.any(Number) });
    await expect(readsBack(false)).rejects.toThrow('get SEEN#1 SEEN -> a stale answer, one write behind');
  });

  it('finds a handler that no schedule can bring to its end', async () => {
    const handler = leased(ThingHappened, async () => {
      throw new Error('never');
    });
    await expect(explore(handler, { event, check: () => {} })).rejects.toThrow(
      /^A message is in the dead-letter queue: .*Error: never\n/,
    );
  });

  it('names otherTables for a table that is not listed, and shows the keys of one that is', async () => {
    const write = { Put: { TableName: 'Lines', Item: { orderId: 'o-1', line: 2 } } };
    const remove = { Delete: { TableName: 'Lines', Key: { orderId: 'o-1', line: 3 } } };
    const handler = transactional(ThingHappened, async () => ({ writes: [write, remove] }));
    await expect(explore(handler, { event, check: () => {} })).rejects.toThrow(
      /^.*in the option otherTables of explore or memoryTable: { Lines: \['id'\] }\.\n[\s\S]* put an item of Lines/,
    );
    const fails = () => {
      throw new Error('wrong');
    };
    const failure = explore(handler, { event, check: fails, otherTables: { Lines: ['orderId', 'line'] } });
    await expect(failure).rejects.toThrow(/to PROCESSED, put Lines o-1 2, delete Lines o-1 3\n/);
  });

  it('explores one switch beside its faults and stalls by default, and every order if asked', async () => {
    const schedules = async (more: object) =>
      (
        await explore(
          leased(ThingHappened, async (_event, ctx) => ctx.commit({ writes: [ADD_ONE] })),
          { event, check: () => {}, ...more },
        )
      ).schedules;
    const byDefault = await schedules({});
    expect(byDefault).toBe(await schedules({ deviations: 2 }));
    expect(byDefault).toBeLessThan(await schedules({ deviations: Number.POSITIVE_INFINITY }));
    const faultless = { faults: 0 };
    expect(await schedules(faultless)).toBe(await schedules({ ...faultless, deviations: 1 }));
    expect(await schedules({ ...faultless, stalls: 1 })).toBe(
      await schedules({ ...faultless, stalls: 1, deviations: 2 }),
    );
  });

  it.for<[string, (ctx: LeasedContext) => void, (table: MemoryTable) => void]>([
    [
      'ctx.once',
      (ctx) => void ctx.once('charge', async () => 'charged'),
      (table) =>
        expect(table.items().find(({ SK }) => SK === 'MESSAGE')).toMatchObject({
          effects: { charge: { status: 'COMPLETED' } },
        }),
    ],
    [
      'ctx.onceEach',
      (ctx) => void ctx.onceEach('ship', ['a'], async () => 'shipped'),
      (table) =>
        expect(table.items().find(({ SK }) => SK === 'MESSAGE')).toMatchObject({
          effects: { 'ship.a': { status: 'COMPLETED' } },
        }),
    ],
    [
      'ctx.commit',
      (ctx) => void ctx.commit({ writes: [ADD_ONE] }),
      (table) => expect(table.item(COUNTER)).toMatchObject({ n: 1 }),
    ],
  ])(
    'passes a handler that does not await %s: its failure fails the message, which runs again',
    async ([, start, check]) => {
      await explore(
        leased(ThingHappened, async (_event, ctx) => start(ctx)),
        { event, check },
      );
    },
  );

  it.for<[string, (ctx: LeasedContext) => Promise<unknown>, string]>([
    [
      'an effect that is not awaited before the commit',
      async (ctx) => {
        void ctx.once('charge', async () => 'charged');
        await ctx.commit({ writes: [ADD_ONE] });
      },
      'ctx.commit is refused: ctx.once("charge") is not awaited.',
    ],
    [
      'an effect that starts after the commit',
      async (ctx) => {
        await ctx.commit({ writes: [ADD_ONE] });
        await ctx.once('charge', async () => 'charged').catch(() => {});
      },
      'ctx.once("charge") after ctx.commit',
    ],
  ])('names %s', async ([, handle, named]) => {
    const handler = leased(ThingHappened, async (_event, ctx) => handle(ctx));
    const check = (table: MemoryTable) => expect(table.item(COUNTER)).toMatchObject({ n: 1 });
    await expect(explore(handler, { event, check })).rejects.toThrow(named);
  });

  it('reports an un-awaited effect that fails permanently with a timeline, instead of ending the process', async () => {
    const handler = leased(ThingHappened, async (_event, ctx) => {
      void ctx.once('charge', async () => Promise.reject(new Error('refused')));
    });
    await expect(explore(handler, { event, check: () => {} })).rejects.toThrow(
      /in the dead-letter queue[\s\S]*worker 1 +effect "charge"\n.*refused/,
    );
  });
});
