import type { Handler } from '../../lambdas/runtime/consume/handler.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import type { Actor } from '../../testing/explorer/actor.ts';
import { type Scenario, START } from '../../testing/explorer/exploration.ts';
import { chargeAndCommit, write } from './consumer-handlers.ts';
import { type ConsumerSetting, consumerScenarios, counted } from './consumer-scenario.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import { rejectedRows } from './operator-desk.ts';
import type { Bounds } from './relay-scenarios.ts';

/** The workers whose name begins so have the next version of the stored shape, and finish what this one leaves. */
const NEWER = 'newer';

/** The version of the stored shape that a worker has. */
const schemaOf = ({ name }: Actor) => (name.startsWith(NEWER) ? SCHEMA + 1 : SCHEMA);

/** This version's workers do not change a row of a newer version, and their message waits until that version has finished it. */
const SETTINGS: readonly ConsumerSetting[] = [
  left('a message that a newer version left FAILED', chargeAndCommit, { status: 'FAILED' }),
  left('a message that a newer version left FAILED, and a transactional handler', write, {
    status: 'FAILED',
  }),
  left('a message that a newer version left under a lease that has passed', chargeAndCommit, {
    status: 'PROCESSING',
    leaseUntil: START - 1,
    endsBy: START - 1,
  }),
  {
    ...left('a message that a newer version rejected, redriven', chargeAndCommit, {}),
    world: {
      schemaOf,
      items: (eventId) => rejectedRows(eventId).map((row) => ({ ...row, schema: SCHEMA + 1 })),
    },
  },
  {
    ...left('a message that a newer version processed', chargeAndCommit, {
      status: 'PROCESSED',
      processedAt: START,
      expiresAt: 9_999_999_999,
    }),
    verdict: (world) => counted(world, 0),
  },
  {
    name: 'two versions that take one message',
    handler: () => () => chargeAndCommit,
    world: { schemaOf, copies: 2 },
    workersMax: 1,
    acts: (world, scheduler) => world.work(scheduler.actor(`${NEWER} worker`), 1),
    rest: `${NEWER} rest`,
    verdict: (world) => counted(world, 1),
  },
];

/** A message with the row of a newer version. */
function left(name: string, handler: Handler, row: Item): ConsumerSetting {
  const written = {
    schema: SCHEMA + 1,
    fence: 'of a newer worker',
    attempts: 1,
    type: 'ThingHappened',
    ...row,
  };
  return {
    name,
    handler: () => () => handler,
    world: { schemaOf, items: (eventId) => [{ ...inboxKey('worker', eventId), ...written }] },
    rest: `${NEWER} rest`,
    verdict: (world) => counted(world, 1),
  };
}

/** Every setting of two versions, as scenarios. */
export function versionScenarios(bounds: Bounds, tamper?: InboxTamper): Scenario[] {
  return consumerScenarios(SETTINGS, bounds, tamper);
}
