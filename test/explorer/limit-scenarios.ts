import { CLOCK_SKEW_MS } from '../../lambdas/runtime/base/clock.ts';
import { leased } from '../../lambdas/runtime/consume/handler.ts';
import { TOKEN_LATE_MS } from '../../lambdas/runtime/consume/limited-run.ts';
import { paceOf } from '../../lambdas/runtime/consume/limits.ts';
import type { ConsumerWorld } from '../../testing/explorer/consumer-world.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { ADD_ONE } from './consumer-handlers.ts';
import { type ConsumerSetting, consumerScenarios, counted, happened } from './consumer-scenario.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import { PLACE_SETTINGS } from './place-scenarios.ts';
import type { Bounds } from './relay-scenarios.ts';

/** One run per 10 seconds. */
const LIMIT = { key: () => 'merchant-1', perSecond: 0.1 };

/** The starts of the handler: `<milliseconds since the beginning>/<message>`, so that a repeated write adds none. */
const STARTS = { PK: 'STARTS#1', SK: 'STARTS' };

/** Clocks that differ, before and after, and a start as late as its token allows. */
const MAY_MISS_MS = 2 * CLOCK_SKEW_MS + TOKEN_LATE_MS;

/** Writes down when it starts, then commits. */
const limited: ConsumerSetting['handler'] =
  (moment) =>
  ({ table }) =>
    leased(
      ThingHappened,
      async (event, ctx) => {
        const start = `${String(moment.sinceStartMs()).padStart(10, '0')}/${event.aggregateId}`;
        await table.write({
          Update: {
            Key: STARTS,
            UpdateExpression: 'ADD starts :start',
            ExpressionAttributeValues: { ':start': new Set([start]) },
          },
        });
        await ctx.commit(ADD_ONE);
      },
      { limit: LIMIT },
    );

const MESSAGES = { others: [happened(2)] };

const SETTINGS: readonly ConsumerSetting[] = [
  { name: 'a limit of one: two messages', handler: limited, world: MESSAGES, verdict: apart(2) },
  {
    name: 'a limit of one: two messages in one batch',
    handler: limited,
    world: { ...MESSAGES, batchSize: 2 },
    verdict: apart(2),
  },
  {
    name: 'a limit of one: a message that is delivered to two workers at once',
    handler: limited,
    world: { ...MESSAGES, twice: true },
    verdict: apart(2),
  },
];

/** What is wrong, if a message is not processed, or two runs started closer to one another than the limit allows. */
function apart(messages: number) {
  return (world: ConsumerWorld): string | undefined => counted(world, messages) ?? tooClose(world);
}

function tooClose({ memory }: ConsumerWorld): string | undefined {
  const { starts } = memory.item(STARTS) ?? {};
  const times = [...((starts as Set<string> | undefined) ?? [])].map(Number.parseFloat).sort((a, b) => a - b);
  const leastMs = paceOf(LIMIT).everyMs - MAY_MISS_MS;
  const close = times.find((time, i) => i > 0 && time - Number(times[i - 1]) < leastMs);
  return close === undefined ? undefined : `The limit was exceeded: runs started at ${times.join(', ')} ms`;
}

/** Messages of a handler with a limit, as scenarios. */
export function limitScenarios(bounds: Bounds, tamper: InboxTamper = {}): Scenario[] {
  return consumerScenarios([...SETTINGS, ...PLACE_SETTINGS], bounds, tamper);
}
