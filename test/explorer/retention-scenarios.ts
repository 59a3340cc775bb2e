import { DAY_MS } from '../../lambdas/runtime/base/units.ts';
import { transactional } from '../../lambdas/runtime/consume/handler.ts';
import type { Budget, Scheduler } from '../../testing/explorer/actor.ts';
import type { ConsumerWorld } from '../../testing/explorer/consumer-world.ts';
import { type Scenario, START } from '../../testing/explorer/exploration.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { ADD_ONE, COUNTER, chargeAndCommit, commitOnly } from './consumer-handlers.ts';
import { applied, type ConsumerSetting, consumerScenarios, statusOf } from './consumer-scenario.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Bounds } from './relay-scenarios.ts';

const RETENTION_DAYS = 35;

/** How long the handler of the repeat works: it starts before the end of the retention, and ends after it. */
const WORK_MS = 20_000;

/** A replay to a new consumer: the event is older than the retention of an inbox that starts with it. */
const REPLAYED = { ageMs: 100 * DAY_MS, isNew: true, config: { inboxRetentionDays: RETENTION_DAYS } };

/** A message is processed, and is redelivered when its row is about to expire; from then on, TTL deletes what has expired. */
const SETTINGS: readonly ConsumerSetting[] = [
  {
    name: 'a repeat just before the end of the retention',
    handler: () => () => chargeAndCommit,
    world: { config: { inboxRetentionDays: RETENTION_DAYS } },
    workersMax: 1,
    acts: repeat({ afterEndMs: -10_000 }),
    verdict: once,
  },
  {
    name: 'a repeat just before the end of the retention, to a handler that takes its time',
    handler:
      (moment) =>
      (_parts, { clock }) =>
        transactional(ThingHappened, async () => {
          if (moment.sinceStartMs() > DAY_MS) await clock.sleep(WORK_MS);
          return ADD_ONE;
        }),
    world: { config: { inboxRetentionDays: RETENTION_DAYS } },
    workersMax: 1,
    acts: repeat({ afterEndMs: -10_000 }),
    verdict: once,
  },
  {
    name: 'a repeat at the end of the retention, to a clock that is behind',
    handler: () => () => chargeAndCommit,
    world: { config: { inboxRetentionDays: RETENTION_DAYS } },
    workersMax: 1,
    acts: repeat({ afterEndMs: 1_500, skewMs: -1_900 }),
    verdict: once,
  },
  {
    name: 'an event from before the first start of its consumer, repeated before the end of the retention',
    handler: () => () => chargeAndCommit,
    world: REPLAYED,
    workersMax: 1,
    acts: repeat({ afterEndMs: -10_000 }),
    verdict: ran,
  },
  {
    name: 'an event from before the first start of its consumer, repeated after its row has expired',
    handler: () => () => chargeAndCommit,
    world: REPLAYED,
    workersMax: 1,
    acts: repeat({ afterEndMs: 2 * DAY_MS }),
    verdict: ran,
  },
  {
    name: 'an event from before its consumer got its name',
    handler: () => () => commitOnly,
    // It was processed under the old name.
    world: { items: () => [{ ...COUNTER, n: 1 }], ageMs: 2 * DAY_MS, config: { inboxSince: START - DAY_MS } },
    verdict: (world) => {
      const status = statusOf(world, world.eventId);
      return applied(world, 1) ?? (status === 'REJECTED' ? undefined : `It is ${String(status)}`);
    },
  },
];

/** The message is redelivered, to a second worker. @param when.afterEndMs - measured from the end of the retention */
function repeat(when: { readonly afterEndMs: number; readonly skewMs?: number }): ConsumerSetting['acts'] {
  return async (world: ConsumerWorld, scheduler: Scheduler) => {
    const [message] = world.queue.messages();
    const sender = scheduler.actor('sender');
    const worker = scheduler.actor('worker 2');
    worker.skewBy(when.skewMs ?? 0);
    const endMs = RETENTION_DAYS * DAY_MS;
    const beforeTtlMs = endMs - DAY_MS / 2;
    await sender.clock.sleep(beforeTtlMs);
    void world.expire(scheduler.actor('TTL'));
    await sender.clock.sleep(endMs + when.afterEndMs - beforeTtlMs);
    await sender.step('sends the message again', () => world.queue.send(message?.body));
    await world.work(worker, 1);
  };
}

/** Neither the commit nor, without a fault, the effect happens twice. If every worker before was stopped, the repeat is too old. */
function once(world: ConsumerWorld, { faults, stalls }: Budget): string | undefined {
  const [times = 0] = world.log.happened.values();
  const repeated = times > 1 && faults + stalls === 0;
  if (applied(world, 0) === undefined && statusOf(world, world.eventId) === 'REJECTED') return undefined;
  return applied(world, 1) ?? (repeated ? `The effect happened ${times} times, without a fault` : undefined);
}

/** As {@link once}, and without a fault the event has run, however old it is. */
function ran(world: ConsumerWorld, budget: Budget): string | undefined {
  const isUntouched = budget.faults + budget.stalls === 0;
  return isUntouched ? applied(world, 1) : once(world, budget);
}

/** Every setting of the inbox retention, as scenarios. */
export function retentionScenarios(bounds: Bounds, tamper?: InboxTamper): Scenario[] {
  return consumerScenarios(SETTINGS, bounds, tamper);
}
