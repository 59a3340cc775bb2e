import { DAY_MS } from '../../lambdas/runtime/base/units.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { asScenarios, type Bounds, OLD_MS, type RelaySetting, sweep } from './relay-scenarios.ts';
import type { Tamper } from './relay-world.ts';

type Act = RelaySetting['actors'][number];

/** A lease that no relay takes. */
const HELD_FOR_MS = 400 * DAY_MS;

const makeDue =
  (name: string): Act =>
  (world, scheduler) =>
    world.makeDue(scheduler.actor(name));

/** The stream's mapping, which comes at any time. */
const stream: Act = async (world, scheduler) => {
  const actor = scheduler.actor('stream');
  await actor.step('read the stream', () => {});
  await world.stream(actor, 2);
};

const SETTINGS: readonly RelaySetting[] = [
  {
    name: 'an event that is leased for years, and an operator who makes it due beside another one',
    world: { events: [{ ageMs: OLD_MS, heldForMs: HELD_FOR_MS }], isChanged: true },
    actors: [
      async (world, scheduler) => {
        await makeDue('operator 1')(world, scheduler);
        await world.aMinute(scheduler.actor('time'));
        await sweep('sweep')(world, scheduler);
      },
      makeDue('operator 2'),
    ],
  },
  {
    name: 'an event that is leased for years, the stream, and an operator who makes it due',
    world: { events: [{ ageMs: 1_000, heldForMs: HELD_FOR_MS }], isChanged: true },
    actors: [makeDue('operator'), stream, sweep('sweep')],
  },
];

/** Every setting of rows that were changed by hand, as scenarios. */
export function changedScenarios(bounds: Bounds, tamper?: Tamper): Scenario[] {
  return asScenarios(SETTINGS, bounds, tamper);
}
