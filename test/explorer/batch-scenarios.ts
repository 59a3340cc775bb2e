import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { leased, transactional } from '../../lambdas/runtime/consume/handler.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { COUNTER } from './consumer-handlers.ts';
import { type ConsumerSetting, consumerScenarios, counted, happened, statusOf } from './consumer-scenario.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Bounds } from './relay-scenarios.ts';

const OUTAGE_MS = 240 * MINUTE_MS;

const addOne = {
  Update: { Key: COUNTER, UpdateExpression: 'ADD n :one', ExpressionAttributeValues: { ':one': 1 } },
};

/** A message dies only of its own failures: batches, long outages, and incidents that last. */
const SETTINGS: readonly ConsumerSetting[] = [
  {
    name: 'a killer and its neighbor',
    // Each attempt counts: one that was counted wrongly rejects the neighbor.
    world: { others: [happened(2)], batchSize: 2, maxReceiveCount: 20, config: { maxAttempts: 1 } },
    handler:
      () =>
      (_parts, { die }) =>
        leased(ThingHappened, async (event) => {
          if (event.aggregateId === 'thing-1') await die();
        }),
    verdict: (world) => {
      const [killer, neighbor] = world.eventIds.map((id) => statusOf(world, id));
      if (neighbor !== 'PROCESSED') return `The neighbor of a killer is ${neighbor}`;
      return killer === 'REJECTED' ? undefined : `A message that kills its process is ${killer}`;
    },
  },
  {
    name: 'two events on one row',
    world: { others: [happened(2)], batchSize: 2 },
    handler: () => () => leased(ThingHappened, async (_event, ctx) => ctx.commit({ writes: [addOne] })),
    verdict: (world) => counted(world, 2),
  },
  {
    name: 'two events on one row, transactional',
    world: { others: [happened(2)], batchSize: 2 },
    handler: () => () => transactional(ThingHappened, async () => ({ writes: [addOne] })),
    verdict: (world) => counted(world, 2),
  },
  {
    name: 'a long outage',
    world: {
      outageMs: OUTAGE_MS,
      config: { maxAttempts: 1 },
      // What the outage takes by its delays, and what one fault and a rejection may: no more.
      maxReceiveCount: 27,
    },
    handler: () => () => leased(ThingHappened, async (_event, ctx) => ctx.commit({ writes: [addOne] })),
    verdict: (world) => counted(world, 1),
  },
  {
    name: 'a long incident of what the handler calls',
    world: { config: { maxAttempts: 10 }, maxReceiveCount: 16 },
    handler: (moment) => () =>
      leased(ThingHappened, async (_event, ctx) => {
        if (moment.sinceStartMs() < 30 * MINUTE_MS) throw new Error('bank answered 503');
        await ctx.commit({ writes: [addOne] });
      }),
    verdict: (world) => counted(world, 1),
  },
];

/** Every setting of a batch, as scenarios. */
export function batchScenarios(bounds: Bounds, tamper?: InboxTamper): Scenario[] {
  return consumerScenarios(SETTINGS, bounds, tamper);
}
