import { describe, expect, test } from 'vitest';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { bench, ThingHappened } from '../../support/runtime-bench.ts';
import { consumer, domainRow, inboxRow, send } from './consumer-rig.ts';

describe('a leased handler that does not await', () => {
  test('a commit that is refused fails: its message is not processed without its writes', async () => {
    const parts = bench();
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
    const parts = bench();
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
    const parts = bench();
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
    const parts = bench();
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
    const parts = bench();
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await ctx
          .once('ping', async () => {
            throw new Error('nobody is there');
          })
          .catch(() => {});
      }),
    ]);
    const event = send(parts);
    await deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });
});
