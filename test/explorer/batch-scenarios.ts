import { leased, transactional } from '../../lambdas/runtime/consume/handler.ts';
import { inboxKey } from '../../lambdas/runtime/store/rows.ts';
import type { Actor, Scheduler } from '../../testing/explorer/actor.ts';
import type { ConsumerWorldOptions } from '../../testing/explorer/consumer-parts.ts';
import { type ConsumerWorld, consumerWorld } from '../../testing/explorer/consumer-world.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Bounds } from './relay-scenarios.ts';

/** A message dies only of its own failures: batches, long outages, and incidents that last. */
interface Setting {
  readonly name: string;
  readonly handler: (world: Moment) => ConsumerWorldOptions['handler'];
  readonly world: Partial<ConsumerWorldOptions>;
  /** What may not be when all is over. @default only what may never be */
  readonly verdict?: (world: ConsumerWorld) => string | undefined;
}

/** The true time, and when the schedule began. */
interface Moment {
  sinceStartMs(): number;
}

const MINUTE_MS = 60_000;
const OUTAGE_MS = 240 * MINUTE_MS;

/** The longest that a queue takes to come to rest, in receives. */
const REST_RECEIVES = 300;

const happened = (n: number) => ThingHappened.create({ aggregateId: `thing-${n}`, data: { n } });
const COUNTER = { PK: 'COUNTER#1', SK: 'COUNTER' };
const addOne = {
  Update: { Key: COUNTER, UpdateExpression: 'ADD n :one', ExpressionAttributeValues: { ':one': 1 } },
};

const SETTINGS: readonly Setting[] = [
  {
    name: 'a killer and its neighbour',
    // Each attempt counts: one that was counted wrongly rejects the neighbour.
    world: { others: [happened(2)], batchSize: 2, maxReceiveCount: 20, config: { maxAttempts: 1 } },
    handler:
      () =>
      (_parts, { die }) =>
        leased(ThingHappened, async (event) => {
          if (event.aggregateId === 'thing-1') await die();
        }),
    verdict: (world) => {
      const [killer, neighbour] = world.eventIds.map((id) => statusOf(world, id));
      if (neighbour !== 'PROCESSED') return `The neighbour of a killer is ${neighbour}`;
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

function statusOf(world: ConsumerWorld, eventId: string): unknown {
  return world.memory.item(inboxKey(world.config.consumer, eventId))?.status;
}

function counted(world: ConsumerWorld, times: number): string | undefined {
  const unrest = world.unrest();
  if (unrest !== undefined) return unrest;
  const n = Number(world.memory.item(COUNTER)?.n ?? 0);
  return n === times ? undefined : `The effects were applied ${n} times, not ${times}`;
}

/** Every setting of a batch, as scenarios. */
export function batchScenarios(bounds: Bounds, tamper: InboxTamper = {}): Scenario[] {
  return SETTINGS.map((setting) => scenarioOf(setting, bounds, tamper));
}

function scenarioOf(setting: Setting, { budget, actors }: Bounds, tamper: InboxTamper): Scenario {
  return {
    name: `inbox: ${setting.name}`,
    budget,
    begin: async (scheduler: Scheduler) => {
      const startedAt = scheduler.now();
      const moment = { sinceStartMs: () => scheduler.now() - startedAt };
      const world = await consumerWorld(scheduler, {
        event: happened(1),
        handler: setting.handler(moment),
        ...setting.world,
        ...tamper,
      });
      const workers: Actor[] = [];
      for (let number = 1; number <= actors; number += 1) workers.push(scheduler.actor(`worker ${number}`));
      for (const worker of workers) void world.work(worker, 1);
      return {
        ...world,
        settle: (again) => void world.work(again.actor('rest'), REST_RECEIVES),
        verdict: () => setting.verdict?.(world),
      };
    },
  };
}
