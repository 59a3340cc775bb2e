import { DAY_MS, MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import type { Scheduler } from '../../testing/explorer/actor.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import {
  asScenarios,
  type Bounds,
  FIRST_AGE_MS,
  type RelaySetting,
  SKEW_MS,
  stream,
  sweep,
} from './relay-scenarios.ts';
import type { RelayWorld, Tamper } from './relay-world.ts';

type Act = RelaySetting['actors'][number];

const cancel =
  (name: string, how?: { readonly withOrder: boolean }): Act =>
  (world, scheduler) =>
    world.cancel(scheduler.actor(name), how);

const reschedule =
  (name: string): Act =>
  (world, scheduler) =>
    world.reschedule(scheduler.actor(name));

/** The mapping of the stream shard that has one of the records; the second event's has no mapping. */
const streamOf =
  (onlyRecord: number): Act =>
  (world, scheduler) =>
    world.stream(scheduler.actor(`stream ${onlyRecord}`), 3, { onlyRecord });

const requeueBehind: Act = (world: RelayWorld, scheduler: Scheduler) => {
  const actor = scheduler.actor('operator');
  actor.skewBy(-SKEW_MS);
  return world.requeue(actor);
};

/** An event that was committed ten minutes before the schedule begins. */
const COMMITTED = { ageMs: 10 * MINUTE_MS };

const SETTINGS: readonly RelaySetting[] = [
  {
    name: 'a scheduled event, a sweep, and a cancellation',
    world: { events: [{ ...COMMITTED, dueInMs: -FIRST_AGE_MS }] },
    actors: [sweep('sweep'), cancel('cancellation'), stream],
  },
  {
    name: 'a cancellation in a transaction, and a sweep',
    world: { events: [{ ...COMMITTED, dueInMs: -FIRST_AGE_MS }] },
    actors: [cancel('payment', { withOrder: true }), sweep('sweep'), stream],
  },
  {
    name: 'a scheduled event that is not due, the stream, and a sweep',
    world: { events: [{ ageMs: 500, dueInMs: 20_000 }] },
    actors: [stream, sweep('sweep'), cancel('cancellation')],
  },
  {
    name: 'a scheduled event that is committed after its minute was read',
    world: { events: [{ ...COMMITTED, writtenAgoMs: 500, dueInMs: -3 * MINUTE_MS }] },
    actors: [stream, cancel('cancellation'), sweep('sweep')],
  },
  {
    name: 'a scheduled event that is committed after its minute was read, without the stream',
    world: { events: [{ ...COMMITTED, writtenAgoMs: 500, dueInMs: -3 * MINUTE_MS }] },
    actors: [sweep('sweep 1'), cancel('cancellation'), sweep('sweep 2', SKEW_MS)],
  },
  {
    name: 'a DEAD scheduled event, requeued by a clock that is behind, and a cancellation',
    world: { events: [{ ...COMMITTED, dueInMs: -SKEW_MS, status: 'DEAD' }], mayDie: true, unsettled: true },
    actors: [requeueBehind, cancel('cancellation'), sweep('sweep')],
  },
  {
    name: 'an event of next week, and two transactions that cancel it',
    world: { events: [{ ...COMMITTED, dueInMs: 8 * DAY_MS }] },
    actors: [
      cancel('payment 1', { withOrder: true }),
      cancel('payment 2', { withOrder: true }),
      cancel('cancellation'),
    ],
  },
  {
    name: 'an event of next week, cancelled, whose entry is committed again after a week',
    world: { events: [{ ...COMMITTED, dueInMs: 8 * DAY_MS }] },
    actors: [
      cancel('cancellation'),
      (world, scheduler) => world.commitAgain(scheduler.actor('producer')),
      cancel('payment', { withOrder: true }),
    ],
  },
  {
    name: 'a scheduled event that is rescheduled, and a sweep',
    world: { events: [{ ...COMMITTED, dueInMs: -FIRST_AGE_MS }] },
    actors: [reschedule('producer'), sweep('sweep'), stream],
  },
  {
    name: 'an event of next week, and two producers that reschedule it',
    world: { events: [{ ...COMMITTED, dueInMs: 8 * DAY_MS }] },
    actors: [reschedule('producer 1'), reschedule('producer 2'), reschedule('producer 3')],
  },
  {
    name: 'a producer that schedules an event seconds ahead, and the stream',
    world: { events: [] },
    actors: [
      (world, scheduler) => world.produce(scheduler.actor('producer'), { atOnce: false, dueInMs: 1_500 }),
      (world, scheduler) => world.streamAfterCommit(scheduler.actor('stream'), 2),
      sweep('sweep'),
    ],
  },
  {
    name: 'publish at once, with a scheduled event',
    world: { events: [] },
    actors: [
      (world, scheduler) => world.produce(scheduler.actor('producer'), { atOnce: true, dueInMs: 20_000 }),
      sweep('sweep'),
    ],
  },
  {
    name: 'scheduled events in two higher shards, each with its own stream shard',
    world: {
      events: [
        { ageMs: 500, dueInMs: 20_000 },
        { ageMs: 500, dueInMs: 20_000 },
        { ageMs: 500, dueInMs: 20_000 },
      ],
      producerShards: 4,
    },
    actors: [streamOf(2), streamOf(0), sweep('sweep')],
  },
];

/** Every setting of scheduled events, as scenarios. */
export function scheduledScenarios(bounds: Bounds, tamper?: Tamper): Scenario[] {
  return asScenarios(SETTINGS, bounds, tamper);
}
