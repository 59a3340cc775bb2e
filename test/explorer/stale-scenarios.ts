import { leased, transactional } from '../../lambdas/runtime/consume/handler.ts';
import type { ConsumerWorld } from '../../testing/explorer/consumer-world.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { ADD_ONE, COUNTER, charge } from './consumer-handlers.ts';
import { type ConsumerSetting, consumerScenarios, statusOf } from './consumer-scenario.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Bounds } from './relay-scenarios.ts';

/** Less than a lease: a message whose worker stopped is stale when another one takes it over. */
const EXPIRES_IN_MS = 10_000;

/** The message is stale at its first receive, for a release whose handler takes only young ones: the second worker has another one. */
const TWO_RELEASES: ConsumerSetting['world'] = {
  ageMs: 2 * EXPIRES_IN_MS,
  twice: true,
  tamperHandler: (handler, { name }) =>
    name === 'worker 2' ? { ...handler, expiresInMs: undefined } : handler,
};

const chargeInTime = leased(
  ThingHappened,
  async (_event, ctx) => {
    await charge(ctx);
    await ctx.commit(ADD_ONE);
  },
  { expiresInMs: EXPIRES_IN_MS },
);

const writeInTime = transactional(ThingHappened, async () => ADD_ONE, { expiresInMs: EXPIRES_IN_MS });

const SETTINGS: readonly ConsumerSetting[] = [
  {
    name: 'an effect, stale after a takeover',
    handler: () => () => chargeInTime,
    verdict: wholeOrNothing,
  },
  {
    name: 'an effect, stale for one of two releases',
    handler: () => () => chargeInTime,
    world: TWO_RELEASES,
    verdict: wholeOrNothing,
  },
  {
    name: 'a transactional handler, stale for one of two releases',
    handler: () => () => writeInTime,
    world: TWO_RELEASES,
    verdict: wholeOrNothing,
  },
];

/** Returns the violation: a message that is not settled, that was discarded although it had an effect, or that was processed without one. */
function wholeOrNothing(world: ConsumerWorld): string | undefined {
  const unrest = world.unrest();
  if (unrest !== undefined) return unrest;
  const status = statusOf(world, world.eventId);
  const times = Number(world.memory.item(COUNTER)?.n ?? 0);
  const happened = world.log.happened.size;
  if (status === 'DISCARDED' && times + happened > 0)
    return 'A message was discarded as stale after an effect of it';
  return status === 'PROCESSED' && times !== 1
    ? `The writes were applied ${times} times, not once`
    : undefined;
}

/** Messages of a handler that takes only young ones, as scenarios. */
export function staleScenarios(bounds: Bounds, tamper: InboxTamper = {}): Scenario[] {
  return consumerScenarios(SETTINGS, bounds, tamper);
}
