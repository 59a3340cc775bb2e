import { PoisonMessage } from '../../lambdas/runtime/base/errors.ts';
import { transactionalBatch } from '../../lambdas/runtime/consume/batch-handler.ts';
import { OUTBOX_PREFIX } from '../../lambdas/runtime/store/outbox-partition.ts';
import type { ConsumerWorld } from '../../testing/explorer/consumer-world.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { COUNTER } from './consumer-handlers.ts';
import { type ConsumerSetting, consumerScenarios, happened, statusOf } from './consumer-scenario.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Bounds } from './relay-scenarios.ts';

/** The message of the second event is the one that fails. */
const FAILS = 'thing-2';

/** A digit for each message, so that the sum says which were applied how often: 1, 10, 100. */
const digit = (n: number) => 10 ** (n - 1);

/** Adds the digits of its events to one row, and publishes an event for each. @param meets - called with the things of each run */
function adds(meets: (things: readonly string[]) => Promise<unknown> | undefined) {
  return transactionalBatch(ThingHappened, async (events) => {
    await meets(events.map(({ aggregateId }) => aggregateId));
    const sum = events.reduce((total, { data }) => total + digit(data.n), 0);
    return {
      writes: [
        { Update: { Key: COUNTER, UpdateExpression: 'ADD n :n', ExpressionAttributeValues: { ':n': sum } } },
      ],
      events: events.map((cause) => ({ cause, draft: happened(cause.data.n) })),
    };
  });
}

const all: ConsumerSetting['handler'] = () => () => adds(() => undefined);

const SETTINGS: readonly ConsumerSetting[] = [
  {
    name: 'a batch of two messages, in two workers at once',
    world: { others: [happened(2)], batchSize: 2, twice: true },
    handler: all,
    verdict: (world) => world.unrest() ?? summed(world, 11),
  },
  {
    name: 'batches that overlap: an event in both, and another one',
    // The first batch is the event twice, the second one the event and the other one.
    world: { others: [happened(2)], batchSize: 2, copies: 3 },
    handler: all,
    verdict: (world) => world.unrest() ?? summed(world, 11),
  },
  {
    name: 'a batch with one event in two messages, and another one',
    world: { others: [happened(2)], batchSize: 3, copies: 2 },
    handler: all,
    verdict: (world) => world.unrest() ?? summed(world, 11),
  },
  {
    name: 'a batch with poison',
    world: { others: [happened(2), happened(3)], batchSize: 3 },
    handler: () => () =>
      adds((things) => {
        if (things.includes(FAILS)) throw new PoisonMessage('never');
        return undefined;
      }),
    verdict: (world) => onlySecondRejected(world) ?? summed(world, 101),
  },
  {
    name: 'a batch with a killer',
    // Each attempt counts: one that was counted wrongly rejects a neighbor.
    world: {
      others: [happened(2), happened(3)],
      batchSize: 3,
      maxReceiveCount: 20,
      config: { maxAttempts: 1 },
    },
    handler:
      () =>
      (_parts, { die }) =>
        adds((things) => (things.includes(FAILS) ? die() : undefined)),
    verdict: (world) => onlySecondRejected(world) ?? summed(world, 101),
  },
];

/** The violation, if other effects than these were applied, or an effect has no event. @param expected - a digit for each message: how often it was applied */
function summed({ memory }: ConsumerWorld, expected: number): string | undefined {
  const n = Number(memory.item(COUNTER)?.n ?? 0);
  if (n !== expected) return `The effects of the messages were applied ${n} times, not ${expected}`;
  const events = memory.items().filter(({ PK }) => String(PK).startsWith(OUTBOX_PREFIX)).length;
  const wanted = [...String(expected)].filter((times) => times === '1').length;
  return events === wanted ? undefined : `There are ${events} events of ${wanted} messages`;
}

function onlySecondRejected(world: ConsumerWorld): string | undefined {
  const [first, failing, third] = world.eventIds.map((id) => statusOf(world, id));
  if (first !== 'PROCESSED' || third !== 'PROCESSED') return `The neighbors are ${first} and ${third}`;
  return failing === 'REJECTED' ? undefined : `The message that fails is ${failing}`;
}

/** Messages of a batch handler, as scenarios. */
export function batchHandlerScenarios(bounds: Bounds, tamper: InboxTamper = {}): Scenario[] {
  return consumerScenarios(SETTINGS, bounds, tamper);
}
