import { z } from 'zod/mini';
import type { Handler } from '../../../../lambdas/runtime/consume/handler.ts';
import { defineEvent } from '../../../../lambdas/runtime/events/event.ts';
import type { Payloads } from '../../../../lambdas/runtime/events/payloads.ts';
import { createConsumer } from '../../../../lambdas/runtime/sources/sqs/consumer.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import { inboxKey } from '../../../../lambdas/runtime/store/keys.ts';
import {
  lambdaContext,
  type MemoryPayloadsOptions,
  memoryPayloads,
  memoryRelay,
} from '../../../../testing/index.ts';
import { consumerConfig, rig, runThrough } from '../../../support/runtime-rig.ts';

/** A report, whose text may be large. */
export const ReportMade = defineEvent({
  source: 'things',
  type: 'ReportMade',
  version: 1,
  aggregateType: 'Report',
  schema: z.object({ text: z.string() }),
});

/** A text above the threshold. */
export const LARGE = 'ä'.repeat(1_000);

/** A producer, its relay and a consumer of reports, whose payloads above 1 KB are objects. */
export function reports(options: MemoryPayloadsOptions = {}, maxReceiveCount = 20) {
  const parts = rig({ maxReceiveCount });
  const { clock, memory: table, queue, bus, telemetry } = parts;
  const payloads = memoryPayloads({ aboveBytes: 1024, ...options });
  const outboxOf = (own?: Payloads) => createOutbox({ config: consumerConfig, table, clock, payloads: own });
  const outbox = outboxOf(payloads);
  const relay = memoryRelay({ table, bus, clock, telemetry });
  bus.routeTo(queue);
  const consumerOf = (handler: Handler, own: Payloads | null = payloads) => {
    const handle = createConsumer({
      config: consumerConfig,
      table,
      queue,
      handlers: [handler],
      clock,
      telemetry,
      payloads: own ?? undefined,
    });
    const deliver = (timeoutMs?: number) =>
      runThrough(clock, queue.deliver(handle, 10, lambdaContext({ clock, timeoutMs })));
    const drain = async (rounds = 20) => {
      for (let round = 0; round < rounds && queue.messages().length > 0; round += 1) {
        await deliver();
        const next = Math.min(...queue.messages().map((message) => message.visibleAt));
        if (Number.isFinite(next)) await clock.advance(Math.max(1, next - clock.now()));
      }
    };
    return { handle, deliver, drain };
  };
  const commit = async (...texts: string[]) => {
    const events = texts.map((text, n) => ReportMade.create({ aggregateId: `r-${n}`, data: { text } }));
    const committed = await outbox.commit({ events });
    await relay();
    return committed;
  };
  const row = (eventId: string) => table.item(inboxKey(consumerConfig.consumer, eventId));
  return { ...parts, payloads, outbox, outboxOf, relay, consumerOf, commit, row };
}
