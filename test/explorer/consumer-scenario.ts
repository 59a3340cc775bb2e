import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import type { Actor, Budget, Scheduler } from '../../testing/explorer/actor.ts';
import type { ConsumerWorldOptions } from '../../testing/explorer/consumer-parts.ts';
import { type ConsumerWorld, consumerWorld } from '../../testing/explorer/consumer-world.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { COUNTER } from './consumer-handlers.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Bounds } from './relay-scenarios.ts';

/** A consumer, its messages, and what else acts on them. */
export interface ConsumerSetting {
  readonly name: string;
  readonly handler: (moment: Moment) => ConsumerWorldOptions['handler'];
  readonly world?: Partial<ConsumerWorldOptions>;
  /** Sets up the world before the first worker starts. @default nothing */
  readonly before?: (world: ConsumerWorld, scheduler: Scheduler) => Promise<unknown>;
  /** How many invocations each worker makes. @default 1 */
  readonly invocations?: number;
  /** How many workers there are at most; the others come later, or not at all. @default as many as the bounds say */
  readonly workersMax?: number;
  /** What else acts, from the beginning. @default nothing */
  readonly acts?: (world: ConsumerWorld, scheduler: Scheduler) => Promise<void>;
  /** The actor that lets the queue come to rest. @default 'rest' */
  readonly rest?: string;
  /** What may not be when all is over. @default only what may never be */
  readonly verdict?: (world: ConsumerWorld, spent: Budget) => string | undefined;
}

/** The true time, and when the schedule began. */
export interface Moment {
  /** Epoch milliseconds. */
  now(): number;
  sinceStartMs(): number;
  world(): ConsumerWorld;
}

/** The longest that a queue takes to come to rest, in receives. */
const REST_RECEIVES = 300;

/** The event of most settings here: that of the thing with this number. */
export const happened = (n: number) => ThingHappened.create({ aggregateId: `thing-${n}`, data: { n } });

/** Every setting of a list, as scenarios. */
export function consumerScenarios(
  settings: readonly ConsumerSetting[],
  bounds: Bounds,
  tamper: InboxTamper = {},
): Scenario[] {
  return settings.map((setting) => scenarioOf(setting, bounds, tamper));
}

function scenarioOf(setting: ConsumerSetting, { budget, actors }: Bounds, tamper: InboxTamper): Scenario {
  const { invocations = 1, workersMax = actors, rest = 'rest', acts } = setting;
  return {
    name: `inbox: ${setting.name}`,
    budget,
    begin: async (scheduler: Scheduler) => {
      const startedAt = scheduler.now();
      const moment: Moment = {
        now: () => scheduler.now(),
        sinceStartMs: () => scheduler.now() - startedAt,
        world: () => world,
      };
      const world: ConsumerWorld = await consumerWorld(scheduler, {
        event: happened(1),
        handler: setting.handler(moment),
        ...setting.world,
        ...tamper,
      });
      await setting.before?.(world, scheduler);
      const workers: Actor[] = [];
      for (let number = 1; number <= Math.min(actors, workersMax); number += 1)
        workers.push(scheduler.actor(`worker ${number}`));
      for (const worker of workers) void world.work(worker, invocations);
      void acts?.(world, scheduler);
      return {
        ...world,
        settle: (again) => void world.work(again.actor(rest), REST_RECEIVES),
        verdict: (spent) => setting.verdict?.(world, spent),
      };
    },
  };
}

/** The status of a message's row. */
export function statusOf(world: ConsumerWorld, eventId: string): unknown {
  return world.memory.item(inboxKey(world.config.consumer, eventId))?.status;
}

/** What is wrong, if the effects were not applied this number of times, or a message is not settled. */
export function counted(world: ConsumerWorld, times: number): string | undefined {
  return world.unrest() ?? applied(world, times);
}

/** What is wrong, if the effects were not applied this number of times. */
export function applied({ memory }: ConsumerWorld, times: number): string | undefined {
  const n = Number(memory.item(COUNTER)?.n ?? 0);
  return n === times ? undefined : `The effects were applied ${n} times, not ${times}`;
}
