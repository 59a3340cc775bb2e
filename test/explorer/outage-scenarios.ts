import { RetryLater } from '../../lambdas/runtime/base/errors.ts';
import { leased } from '../../lambdas/runtime/consume/handler.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import type { Budget } from '../../testing/explorer/actor.ts';
import type { ConsumerWorld } from '../../testing/explorer/consumer-world.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { ADD_ONE, CHARGE, chargeAndCommit, write } from './consumer-handlers.ts';
import { type ConsumerSetting, consumerScenarios, counted } from './consumer-scenario.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Bounds } from './relay-scenarios.ts';

/** Longer than a function runs: a worker's last write fails, and the next receives find no table. */
const LONG_MS = 4 * 3_600_000;

/** A worker repeats its last write until the table is back. */
const SHORT_MS = 10_000;

/** The receives that the outage takes by its delays, and those of one fault and a rejection. */
const RECEIVES_MAX = 27;

/** Longer than the handler's attempts last, milliseconds. */
const LIMITED_MS = 10 * 60_000;

/** Every call of the table fails for a time that begins at any moment: in the ordinary schedule, when the work is done. */
const SETTINGS: readonly ConsumerSetting[] = [
  {
    name: 'a table that is away for hours',
    handler: () => () => chargeAndCommit,
    world: { maxReceiveCount: RECEIVES_MAX },
    acts: outage(LONG_MS),
    verdict: unharmed,
  },
  {
    name: 'a table that is away for seconds',
    handler: () => () => chargeAndCommit,
    acts: outage(SHORT_MS),
    verdict: unharmed,
  },
  {
    name: 'a table that is away for hours, and a transactional handler',
    handler: () => () => write,
    world: { maxReceiveCount: RECEIVES_MAX },
    acts: outage(LONG_MS),
    verdict: unharmed,
  },
  {
    name: 'a provider that asks for waits',
    handler: (moment) => () =>
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.once(CHARGE, async () => {
          if (moment.sinceStartMs() < LIMITED_MS) throw new RetryLater(60_000, 'rate limited');
          return { charged: true };
        });
        await ctx.commit(ADD_ONE);
      }),
    world: { maxReceiveCount: RECEIVES_MAX },
    verdict: unharmed,
  },
];

function outage(ms: number): ConsumerSetting['acts'] {
  return (world, scheduler) =>
    scheduler.actor('table').step(`is away for ${ms / 1_000} s`, () => world.beginOutage(ms));
}

/** A healthy message is processed once, and an outage counts no attempt: only a provider that fails does. */
function unharmed(world: ConsumerWorld, { faults }: Budget): string | undefined {
  const attempts = Number(world.memory.item(inboxKey(world.config.consumer, world.eventId))?.attempts);
  return (
    counted(world, 1) ??
    (attempts <= 1 + faults ? undefined : `A healthy message was processed in attempt ${attempts}`)
  );
}

/** Every setting of an outage, as scenarios. */
export function outageScenarios(bounds: Bounds, tamper?: InboxTamper): Scenario[] {
  return consumerScenarios(SETTINGS, bounds, tamper);
}
