import { z } from 'zod/mini';
import { leased, transactional } from '../../lambdas/runtime/consume/handler.ts';
import { externalEvent } from '../../lambdas/runtime/events/external-event.ts';
import { HEARTBEAT } from '../../lambdas/runtime/events/heartbeat-event.ts';
import { resolveMessage } from '../../lambdas/runtime/operations/message-operations.ts';
import { unreadableId } from '../../lambdas/runtime/store/event-id.ts';
import { externalEventId } from '../../lambdas/runtime/store/external-id.ts';
import type { TransactAction } from '../../lambdas/runtime/store/table.ts';
import type { ConsumerWorld } from '../../testing/explorer/consumer-world.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { type ConsumerSetting, consumerScenarios, statusOf } from './consumer-scenario.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Bounds } from './relay-scenarios.ts';

const PAYMENT = 'p-7';

const PaymentMade = externalEvent({
  source: 'bank',
  type: 'PaymentMade',
  id: 'id',
  schema: z.object({ id: z.string() }),
});

/** One payment, as EventBridge delivers it. @param id - EventBridge's own, new for each publish */
const bridged = (id: string) => ({
  source: PaymentMade.source,
  'detail-type': PaymentMade.type,
  id,
  time: '2026-01-15T12:00:00Z',
  detail: { id: PAYMENT },
});

/** The same payment, as SNS delivers it. */
const notified = {
  Type: 'Notification',
  TopicArn: 'arn:aws:sns:us-east-1:000000000000:payments',
  Message: JSON.stringify({ id: PAYMENT }),
};

const HEARTBEAT_EVENT = HEARTBEAT.create({ aggregateId: 'Mailroom', data: {} });

/** Several handlers, an event of another system in several shapes, and heartbeats, in one consumer. */
const SETTINGS: readonly ConsumerSetting[] = [
  {
    name: 'two handlers, an external event in three messages, and a heartbeat',
    handler: () => () => [
      transactional(ThingHappened, async ({ aggregateId }) => ({ writes: [addOne(aggregateId)] })),
      leased(PaymentMade, async ({ data: { id } }, ctx) => {
        await ctx.once('receipt', async () => 'sent');
        await ctx.commit({ writes: [addOne(id)] });
      }),
    ],
    world: {
      others: [HEARTBEAT_EVENT],
      bodies: [bridged('first'), bridged('again'), notified],
      batchSize: 2,
      maxReceiveCount: 8,
    },
    verdict: eachOnce,
  },
  {
    name: 'a message that was resolved while it could not be read, and two redrives of it',
    handler: () => () => [
      transactional(ThingHappened, async ({ aggregateId }) => ({ writes: [addOne(aggregateId)] })),
      leased(PaymentMade, async ({ data: { id } }, ctx) => {
        await ctx.once('receipt', async () => 'sent');
        await ctx.commit({ writes: [addOne(id)] });
      }),
    ],
    world: { bodies: [notified, notified] },
    before: (world, scheduler) => {
      const { body = '' } = world.queue.messages().at(-1) ?? {};
      const clock = { now: () => scheduler.now(), sleep: async () => {} };
      const random = (count: number) => Buffer.alloc(count, 7);
      const note = { consumer: world.config.consumer, by: 'ada', reason: 'done by hand' };
      return resolveMessage({ table: world.memory, clock, random }, { ...note, eventId: unreadableId(body) });
    },
    verdict: (world) =>
      world.unrest() ??
      (countersOf(world) === 'thing-1: 1' ? undefined : `The effects were applied "${countersOf(world)}"`) ??
      (world.log.happened.size === 0 ? undefined : 'An effect of a settled message happened'),
  },
];

function addOne(name: string): TransactAction {
  const Key = { PK: `COUNTER#${name}`, SK: 'COUNTER' };
  return { Update: { Key, UpdateExpression: 'ADD n :one', ExpressionAttributeValues: { ':one': 1 } } };
}

function countersOf({ memory }: ConsumerWorld): string {
  return memory
    .items()
    .filter(({ SK }) => SK === 'COUNTER')
    .map(({ PK, n }) => `${String(PK).slice('COUNTER#'.length)}: ${String(n)}`)
    .join(', ');
}

/** The effects of each identity happened once; a heartbeat is acknowledged, and has none. */
function eachOnce(world: ConsumerWorld): string | undefined {
  const counters = countersOf(world);
  const payment = externalEventId(PaymentMade, [PAYMENT]);
  const status = statusOf(world, payment);
  const keys = [...world.log.happened.keys()].join();
  return (
    (counters === `${PAYMENT}: 1, thing-1: 1` ? undefined : `The effects were applied "${counters}"`) ??
    world.unrest() ??
    (status === 'PROCESSED' ? undefined : `The external event is ${String(status)}`) ??
    (keys === `${world.config.consumer}:${payment}:receipt` ? undefined : `The effects are "${keys}"`)
  );
}

/** Every setting of several kinds of events, as scenarios. */
export function eventScenarios(bounds: Bounds, tamper?: InboxTamper): Scenario[] {
  return consumerScenarios(SETTINGS, bounds, tamper);
}
