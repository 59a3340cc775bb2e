import { leased } from '../../lambdas/runtime/consume/handler.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { ADD_ONE, charge, chargeOnly } from './consumer-handlers.ts';
import { type ConsumerSetting, consumerScenarios, counted } from './consumer-scenario.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Bounds } from './relay-scenarios.ts';

/** A second longer than a function waits for its handler: the batch is answered without it. */
const TOO_LONG_MS = 45_000;

/** A function has answered and is frozen; its next invocation may thaw it, with what the last one left behind. */
const SETTINGS: readonly ConsumerSetting[] = [
  {
    name: 'a handler whose time is up, thawed by the next invocation',
    handler:
      (moment) =>
      (_parts, { clock }) =>
        leased(ThingHappened, async (_event, ctx) => {
          if (moment.sinceStartMs() < TOO_LONG_MS / 2) await clock.sleep(TOO_LONG_MS);
          await charge(ctx);
          await ctx.commit(ADD_ONE);
        }),
    world: { copies: 2 },
    invocations: 2,
    verdict: (world) => counted(world, 1),
  },
  {
    name: 'an effect under way when its time is up, thawed by the next invocation',
    handler: () => () => chargeOnly,
    world: { copies: 2 },
    invocations: 2,
    workersMax: 1,
    verdict: (world) => world.unrest(),
  },
];

/** Every setting of a function that is thawed, as scenarios. */
export function thawScenarios(bounds: Bounds, tamper?: InboxTamper): Scenario[] {
  return consumerScenarios(SETTINGS, bounds, tamper);
}
