import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import type { Budget, Scheduler } from '../../testing/explorer/actor.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { type RelayWorld, type RelayWorldOptions, relayWorld, type Tamper } from './relay-world.ts';

/** How many actors there are, and how much may go wrong. */
export interface Bounds {
  readonly budget: Budget;
  readonly actors: 2 | 3;
}

/** The age of an event whose minute the sweep is just reading for the last time: it ended 1024 minutes ago. */
const LAST_AGE_MS = 1024 * MINUTE_MS + 50_000;

/** The age of an event whose minute is past its last age. */
export const OLD_MS = LAST_AGE_MS + 10 * MINUTE_MS;

/** The age of an event whose minute comes to its last age in 40 s. */
const COMING_AGE_MS = 1024 * MINUTE_MS - 10_000;

/** The age of an event whose minute the sweep is just reading for the first time: it ended a minute ago. */
export const FIRST_AGE_MS = MINUTE_MS + 50_000;

/** As far as clocks may differ. */
export const SKEW_MS = 1_900;

/** Who acts in a world of the relay. */
export interface RelaySetting {
  readonly name: string;
  readonly world: RelayWorldOptions;
  /** Who acts, in the order in which they act when nothing intervenes; the third only where three do. */
  readonly actors: readonly ((world: RelayWorld, scheduler: Scheduler) => Promise<void>)[];
}

/** The stream's mapping, which delivers at most twice. */
export const stream: RelaySetting['actors'][number] = (world, scheduler) =>
  world.stream(scheduler.actor('stream'), 2);

/** The stream's mapping, which delivers until one fault and one stall are over. */
const streamLong: RelaySetting['actors'][number] = (world, scheduler) =>
  world.stream(scheduler.actor('stream'), 3);

/** One pass of the sweep, by a clock that may differ. */
export const sweep =
  (name: string, skewMs = 0): RelaySetting['actors'][number] =>
  (world, scheduler) => {
    const actor = scheduler.actor(name);
    actor.skewBy(skewMs);
    return world.sweep(actor);
  };

/** Time passes only where a call is repeated after a pause: the pass stops at that row. */
const STOPS_AT_A_RETRY = { passMs: 1, entryCodes: ['ThrottlingException'] };

const SETTINGS: readonly RelaySetting[] = [
  {
    name: 'a stream that is late, and a sweep',
    world: { events: [{ ageMs: FIRST_AGE_MS }] },
    actors: [stream, sweep('sweep 1'), sweep('sweep 2')],
  },
  {
    name: 'a producer whose clock is behind',
    world: { events: [{ ageMs: FIRST_AGE_MS, writtenAgoMs: 500 }] },
    actors: [stream, sweep('sweep 1'), sweep('sweep 2', SKEW_MS)],
  },
  {
    name: 'two events in one batch',
    world: { events: [{ ageMs: 1_000 }, { ageMs: 1_000 }] },
    actors: [stream],
  },
  {
    name: 'a producer, then the stream',
    world: { events: [] },
    actors: [
      async (world, scheduler) => {
        await world.produce(scheduler.actor('producer'));
        await stream(world, scheduler);
      },
      sweep('sweep'),
    ],
  },
  {
    name: 'publish at once, and the stream',
    world: { events: [] },
    actors: [
      (world, scheduler) => world.produce(scheduler.actor('producer'), { atOnce: true }),
      (world, scheduler) => world.streamAfterCommit(scheduler.actor('stream'), 2),
      sweep('sweep'),
    ],
  },
  {
    name: 'publish at once by a clock that is behind',
    world: { events: [] },
    actors: [
      (world, scheduler) => {
        const actor = scheduler.actor('producer');
        actor.skewBy(-SKEW_MS);
        return world.produce(actor, { atOnce: true });
      },
      (world, scheduler) => world.streamAfterCommit(scheduler.actor('stream'), 1),
    ],
  },
  {
    name: 'sweeps at the last age',
    world: { events: [{ ageMs: LAST_AGE_MS }] },
    actors: [sweep('sweep 1'), sweep('sweep 2', SKEW_MS), sweep('sweep 3', -SKEW_MS)],
  },
  {
    name: 'an old minute and a newer one',
    world: { events: [{ ageMs: LAST_AGE_MS }, { ageMs: FIRST_AGE_MS }] },
    // A second sweep would only repeat "sweeps at the last age".
    actors: [sweep('sweep')],
  },
  {
    name: 'a minute that comes to its last age',
    world: { events: [{ ageMs: COMING_AGE_MS }] },
    actors: [sweep('sweep 1'), sweep('sweep 2')],
  },
  {
    name: 'an event that may be refused',
    world: {
      events: [{ ageMs: LAST_AGE_MS }],
      entryCodes: ['InvalidArgument', 'SomethingNew'],
      mayDie: true,
    },
    actors: [sweep('sweep 1'), sweep('sweep 2'), sweep('sweep 3')],
  },
  {
    name: 'an event with one attempt, and a bus that fails',
    world: {
      events: [{ ageMs: LAST_AGE_MS }],
      entryCodes: ['ThrottlingException'],
      config: { maxAttempts: 1 },
    },
    actors: [sweep('sweep 1'), sweep('sweep 2')],
  },
  {
    name: 'an event with an undeclared source in front of a good one',
    world: {
      events: [{ ageMs: FIRST_AGE_MS, source: 'strangers' }, { ageMs: FIRST_AGE_MS }],
      config: { sources: ['things'] },
    },
    actors: [stream, sweep('sweep 1'), sweep('sweep 2')],
  },
  {
    name: 'a minute that takes more than one pass',
    world: {
      events: [{ ageMs: OLD_MS, heldForMs: 90_000 }, { ageMs: OLD_MS }, { ageMs: OLD_MS }],
      unsettled: true,
      ...STOPS_AT_A_RETRY,
    },
    actors: [sweep('sweep 1'), sweep('sweep 2')],
  },
  {
    name: 'a requeue in a minute that takes more than one pass',
    world: {
      events: [{ ageMs: OLD_MS, status: 'DEAD' }, { ageMs: OLD_MS }, { ageMs: OLD_MS }],
      unsettled: true,
      mayDie: true,
      ...STOPS_AT_A_RETRY,
    },
    actors: [sweep('sweep 1'), (world, scheduler) => world.requeue(scheduler.actor('operator'))],
  },
  {
    name: 'a requeue and a sweep',
    world: {
      events: [{ ageMs: OLD_MS, status: 'DEAD' }],
      unsettled: true,
      mayDie: true,
    },
    actors: [
      sweep('sweep 1'),
      (world, scheduler) => world.requeue(scheduler.actor('operator')),
      sweep('sweep 2'),
    ],
  },
  {
    name: 'an event in a higher shard, the stream, and a sweep',
    world: { events: [{ ageMs: 1_000 }], producerShards: 2 },
    actors: [streamLong, sweep('sweep')],
  },
  {
    name: 'an old event in a higher shard, and the stream',
    world: { events: [{ ageMs: OLD_MS, writtenAgoMs: 500 }], producerShards: 2 },
    actors: [streamLong, sweep('sweep')],
  },
];

/** Every setting of the relay, as scenarios. */
export function relayScenarios(bounds: Bounds, tamper: Tamper = {}): Scenario[] {
  return asScenarios(SETTINGS, bounds, tamper);
}

/** Makes scenarios of the relay from their settings. */
export function asScenarios(
  settings: readonly RelaySetting[],
  { budget, actors }: Bounds,
  tamper: Tamper = {},
): Scenario[] {
  return settings.map((setting) => ({
    name: `relay: ${setting.name}`,
    budget,
    begin: async (scheduler) => {
      const world = await relayWorld(scheduler, { ...setting.world, tamper });
      for (const act of setting.actors.slice(0, actors)) void act(world, scheduler);
      return world;
    },
  }));
}
