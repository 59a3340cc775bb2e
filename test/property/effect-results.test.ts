import type { SQSEvent } from 'aws-lambda';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type LeasedContext, leased } from '../../lambdas/runtime/consume/handler.ts';
import { createConsumer } from '../../lambdas/runtime/sources/sqs/consumer.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { lambdaContext, memoryTable, memoryTelemetry } from '../../testing/index.ts';
import { consumerConfig } from '../support/runtime-rig.ts';
import { anything } from './support/anything.ts';
import { anyResult, lostByJson, noJson } from './support/arbitraries.ts';
import { eagerClock, settled } from './support/eager-clock.ts';
import { runs, seededBytes } from './support/runs.ts';

it('an effect’s result is the same on the attempt that ran it as on those that read it back: as JSON reads it', async () => {
  await fc.assert(
    fc.asyncProperty(anyResult, fc.nat(), async (result, seed) => {
      const { attempt, status } = rig(seed);
      let runsOfIt = 0;
      const read: unknown[] = [];
      const handle = async (ctx: LeasedContext) => {
        read.push(
          await ctx.once('effect', async () => {
            runsOfIt += 1;
            return result;
          }),
        );
        if (ctx.attempt < 3) throw new Error('not yet');
      };
      for (let n = 1; n <= 3; n += 1) await attempt(handle);
      expect(status()).toBe('PROCESSED');
      expect(runsOfIt).toBe(1);
      expect(read).toHaveLength(3);
      const json = JSON.stringify(result) as string | undefined;
      for (const one of read) {
        expect(JSON.stringify(one)).toBe(json);
        expect(one).toEqual(json === undefined ? undefined : JSON.parse(json));
      }
    }),
    runs(40),
  );
});

it('an effect whose result JSON cannot write as it is, as it happened, is not run again', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(noJson, lostByJson).filter((value) => value !== undefined),
      fc.nat(),
      async (result, seed) => {
        const { attempt, status } = rig(seed);
        let runsOfIt = 0;
        for (let n = 1; n <= 2; n += 1) {
          await attempt((ctx) =>
            ctx.once('effect', async () => {
              runsOfIt += 1;
              return result;
            }),
          );
        }
        expect(status()).toBe('REJECTED');
        expect(runsOfIt).toBe(1);
      },
    ),
    runs(20),
  );
});

/** One message of a consumer, and what its handler does at each attempt. */
function rig(seed: number) {
  const clock = eagerClock();
  const random = seededBytes(seed);
  const table = memoryTable({ clock });
  const { Anything } = anything();
  const eventId = mintEventId(clock.now(), 2, random);
  const detail = {
    ...{ eventId, type: 'Anything', version: 1, aggregateType: 'Thing', aggregateId: '1' },
    occurredAt: 0,
    correlationId: 'chain',
    data: null,
  };
  const body = JSON.stringify({ source: 'things', 'detail-type': 'Anything', detail });
  const record = { messageId: 'message', receiptHandle: 'receipt', body };
  let receives = 0;
  const queue = { changeVisibility: async () => {} };
  return {
    status: () => table.item(inboxKey(consumerConfig.consumer, eventId))?.status,
    attempt: (handle: (ctx: LeasedContext) => Promise<unknown>) => {
      const consumer = createConsumer({
        ...{ config: consumerConfig, table, queue, clock, random, telemetry: memoryTelemetry() },
        handlers: [leased(Anything, (_event, ctx) => handle(ctx))],
      });
      receives += 1;
      const Records = [{ ...record, attributes: { ApproximateReceiveCount: String(receives) } }];
      return settled(consumer({ Records } as unknown as SQSEvent, lambdaContext({ clock })));
    },
  };
}
