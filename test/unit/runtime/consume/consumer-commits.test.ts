import { describe, expect, test, vi } from 'vitest';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { AlreadyProcessed, errorCode, TransactionCancelled } from '../../../../lambdas/runtime/errors.ts';
import { defineEvent, type Envelope } from '../../../../lambdas/runtime/event.ts';
import type { Item } from '../../../../lambdas/runtime/store/table.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { consumer, domainRow, inboxRow, send, storedEffect } from './consumer-rig.ts';

describe('a leased handler', () => {
  test('commits its writes, its events and its message in one transaction', async () => {
    const parts = rig();
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) =>
        ctx.commit({ writes: [domainRow], events: [parts.happened(7)] }),
      ),
    ]);
    const event = send(parts);
    await deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(parts.memory.item({ PK: 'THING#1', SK: 'THING' })).toBeDefined();
    const caused = JSON.parse(parts.rows()[0]?.envelope ?? '') as Envelope;
    expect(caused).toMatchObject({ causationId: event.eventId, correlationId: 'chain', data: { n: 7 } });
  });

  test('a refused domain condition is its failure, not a lost claim and not a success', async () => {
    const parts = rig();
    await parts.memory.write({ Put: { Item: { PK: 'THING#1', SK: 'THING' } } });
    const errors: unknown[] = [];
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.commit({ writes: [domainRow] }).catch((error: unknown) => {
          errors.push(error);
          throw error;
        });
      }),
    ]);
    const event = send(parts);
    await deliver();
    expect(errors).toMatchObject([
      { code: 'TRANSACTION_CANCELLED', reasons: [{ code: 'ConditionalCheckFailed' }] },
    ]);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 1 });
  });

  test('may try again to commit a message that it has lost, and is refused again', async () => {
    const parts = rig();
    const event = send(parts);
    const codes: unknown[] = [];
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await parts.memory.write({ Put: { Item: { ...inboxRow(parts, event), fence: 'other' } as Item } });
      for (const _ of ['first', 'second'])
        codes.push(await ctx.commit({ writes: [domainRow] }).then(() => 'committed', errorCode));
    });
    await consumer(parts, [handler]).deliver();
    expect(codes).toEqual(['FENCE_LOST', 'FENCE_LOST']);
    expect(parts.memory.item({ PK: 'THING#1', SK: 'THING' })).toBeUndefined();
  });

  test('fails when the schema of its event does, however that looks: the table is not out of reach', async () => {
    const parts = rig();
    const event = send(parts);
    const validate = async () => {
      throw Object.assign(new Error('The registry does not answer'), { name: 'TimeoutError' });
    };
    const schema = { '~standard': { version: 1, vendor: 'test', validate } } as const;
    const Unregistered = defineEvent({ ...ThingHappened, schema });
    const handler = leased(ThingHappened, async (_event, ctx) =>
      ctx.commit({ events: [Unregistered.create({ aggregateId: 'thing-1', data: { n: 1 } as never })] }),
    );
    await consumer(parts, [handler]).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 1 });
    expect(parts.telemetry.counted('TableFailures')).toBe(0);
  });

  test('commits up to 99 writes beside its inbox row', async () => {
    const parts = rig();
    const errors: unknown[] = [];
    const put = (n: number) => ({ Put: { Item: { PK: `THING#${n}`, SK: 'THING', schema: 1 } } });
    const writes = Array.from({ length: 100 }, (_, n) => put(n));
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.commit({ writes }).catch((error: unknown) => errors.push(error));
        await ctx.commit({ writes: writes.slice(1) });
      }),
    ]);
    const event = send(parts);
    await deliver();
    expect(errors).toMatchObject([
      { code: 'TRANSACTION_TOO_LARGE', message: expect.stringContaining('101 actions') },
    ]);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('commits once, and runs no effect after that; a later error is logged', async () => {
    const parts = rig();
    const codes: string[] = [];
    const note = (error: { code: string }) => void codes.push(error.code);
    const event = send(parts);
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.commit({ writes: [domainRow] });
        await ctx.commit({}).catch(note);
        await ctx.once('late', async () => 1).catch(note);
        throw new Error('after');
      }),
    ]);
    await deliver();
    expect(codes).toEqual(['AFTER_COMMIT', 'AFTER_COMMIT']);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(parts.queue.messages()).toEqual([]);
    expect(parts.telemetry.lines()).toContainEqual(
      expect.objectContaining({ message: expect.stringContaining('after its commit') }),
    );
  });

  test('a handler that commits twice at once has one commit; the other throws', async () => {
    const parts = rig();
    const other = { Put: { Item: { PK: 'OTHER', SK: 'OTHER' } } };
    const ends: string[] = [];
    const event = send(parts);
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        const both = await Promise.allSettled([
          ctx.commit({ writes: [domainRow], events: [parts.happened(1)] }),
          ctx.commit({ writes: [other] }),
        ]);
        ends.push(...both.map((end) => end.status));
      }),
    ]);
    await deliver();
    expect(ends).toEqual(['fulfilled', 'rejected']);
    expect(parts.memory.item({ PK: 'OTHER', SK: 'OTHER' })).toBeUndefined();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('whose first commit happens late, after it was reported as refused, does not pass off the second as done', async () => {
    const parts = rig();
    const other = { Put: { Item: { PK: 'OTHER', SK: 'OTHER' } } };
    let late: (() => Promise<void>) | undefined;
    const table = {
      ...parts.memory,
      transact: async (actions: Parameters<typeof parts.memory.transact>[0]) => {
        if (late === undefined) {
          late = () => parts.memory.transact(actions);
          throw new TransactionCancelled([{ code: 'None' }, { code: 'ConditionalCheckFailed' }]);
        }
        await late();
        await parts.memory.transact(actions);
      },
    };
    const event = send(parts);
    const ends: string[] = [];
    const handler = leased(ThingHappened, async (_event, ctx) => {
      for (const writes of [[domainRow], [other]]) {
        await ctx.commit({ writes }).then(
          () => ends.push('done'),
          (error: { code: string }) => ends.push(error.code),
        );
      }
    });
    await consumer(parts, [handler], table).deliver();
    expect(ends).toEqual(['TRANSACTION_CANCELLED', 'FENCE_LOST']);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(parts.memory.item({ PK: 'OTHER', SK: 'OTHER' })).toBeUndefined();
  });

  test("a handler's unawaited commit or effect is waited for", async () => {
    const parts = rig();
    const event = send(parts);
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        void ctx.once('mail', async () => {
          await parts.clock.sleep(2_000);
          return 'sent';
        });
        void parts.clock.sleep(1_000).then(() => ctx.commit({ writes: [domainRow] }));
        await parts.clock.sleep(1_500);
      }),
    ]);
    await deliver();
    expect(parts.memory.item({ PK: 'THING#1', SK: 'THING' })).toBeDefined();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(storedEffect(parts, event, 'mail')).toMatchObject({ status: 'COMPLETED' });
  });

  test('whose commit is begun by an effect that it did not await is waited for, however slow', async () => {
    const parts = rig();
    const table = {
      ...parts.memory,
      transact: async (...args: Parameters<typeof parts.memory.transact>) => {
        await parts.clock.sleep(300);
        await parts.memory.transact(...args);
      },
    };
    const event = send(parts);
    const handler = leased(ThingHappened, async (_event, ctx) => {
      void ctx
        .once('mail', async () => parts.clock.sleep(1_000))
        .then(() => ctx.commit({ writes: [domainRow], events: [parts.happened(1)] }));
    });
    await consumer(parts, [handler], table).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', commitId: expect.any(String) });
    expect(parts.rows()).toHaveLength(1);
  });

  test('a handler that swallows the error of an unanswered commit is not done', async () => {
    const parts = rig();
    const table = {
      ...parts.memory,
      transact: () => Promise.reject(Object.assign(new Error('socket hang up'), { name: 'TimeoutError' })),
    };
    const event = send(parts);
    const handler = leased(ThingHappened, async (_event, ctx) =>
      ctx.commit({ writes: [domainRow] }).catch(() => {}),
    );
    await consumer(parts, [handler], table).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', lastError: 'socket hang up' });
    await consumer(parts, [handler]).drain();
    expect(parts.memory.item({ PK: 'THING#1', SK: 'THING' })).toBeDefined();
  });

  test('a commit that begins after its handler has returned throws', async () => {
    const parts = rig();
    const codes: string[] = [];
    const event = send(parts);
    const handler = leased(ThingHappened, async (_event, ctx) => {
      void parts.clock
        .sleep(5_000)
        .then(() => ctx.commit({ writes: [domainRow] }))
        .catch((error: { code: string }) => codes.push(error.code));
    });
    await consumer(parts, [handler]).deliver();
    await parts.clock.advance(6_000);
    expect(codes).toEqual(['HANDLER_ENDED']);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(parts.telemetry.lines().map(({ message }) => message)).toContainEqual(
      expect.stringContaining('after its handler had returned'),
    );
  });

  test('a handler that throws AlreadyProcessed after an unanswered commit is not done', async () => {
    const parts = rig();
    const table = {
      ...parts.memory,
      transact: () => Promise.reject(Object.assign(new Error('socket hang up'), { name: 'TimeoutError' })),
    };
    const event = send(parts);
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await ctx.commit({ writes: [domainRow] }).catch(() => {
        throw new AlreadyProcessed('or so it seems');
      });
    });
    await consumer(parts, [handler], table).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', lastError: 'socket hang up' });
  });

  test('whose commit’s answer was lost is processed, and written once', async () => {
    const parts = rig();
    let lost = 0;
    const table = {
      ...parts.memory,
      transact: async (...args: Parameters<typeof parts.memory.transact>) => {
        await parts.memory.transact(...args);
        lost += 1;
        if (lost <= 2) throw Object.assign(new Error('socket hang up'), { name: 'TimeoutError' });
      },
    };
    const event = send(parts);
    const handle = vi.fn(async (_event: unknown, ctx: { commit(c: object): Promise<void> }) =>
      ctx.commit({ writes: [domainRow] }),
    );
    const { deliver } = consumer(parts, [leased(ThingHappened, handle)], table);
    await deliver();
    expect(handle).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(parts.queue.messages()).toEqual([]);
  });
});
