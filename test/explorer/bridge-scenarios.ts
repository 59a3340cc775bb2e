import { strict } from '../../lambdas/runtime/base/order.ts';
import type { BridgedEvent, BridgeTarget } from '../../lambdas/runtime/bridge/bridge-target.ts';
import type { Handler } from '../../lambdas/runtime/consume/handler.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import type { Scheduler } from '../../testing/explorer/actor.ts';
import type { ConsumerWorldOptions } from '../../testing/explorer/consumer-parts.ts';
import { type ConsumerWorld, consumerWorld } from '../../testing/explorer/consumer-world.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { bridgeTo, memoryTarget, type TargetOptions } from './bridge-target.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import { numbered } from './order-scenarios.ts';
import type { Bounds } from './relay-scenarios.ts';

/** Puts something between the bridge and its ports. */
export interface BridgeTamper extends Pick<InboxTamper, 'tamperTable'> {
  /** Replaces the handler, as if `bridge` had made it. @default the handler itself */
  readonly tamperBridge?: (handler: Handler) => Handler;
  /** Replaces the target. @default the target itself */
  readonly tamperTarget?: (to: BridgeTarget) => BridgeTarget;
}

/** The receives of a message whose predecessor may take its time. */
const RECEIVES = 20;

/** The longest that a queue takes to come to rest, in receives. */
const REST_RECEIVES = 200;

interface Setting extends TargetOptions {
  readonly name: string;
  /** The numbers, in the order in which they are sent. */
  readonly sent: readonly [number, ...number[]];
  readonly world?: Partial<ConsumerWorldOptions>;
  /** The maximum number of invocations of each worker. @default 2 */
  readonly invocations?: number;
  /** A message has one attempt: a call that fails rejects it, and can still take effect. @default false */
  readonly once?: boolean;
  /** The options of a strict order. @default no order */
  readonly order?: Parameters<typeof strict>[0];
}

/**
 * In a batch of three, the first is sent at once, and the others gather meanwhile. A message may be received by two workers that end without a result, make
 * room for two others, be leased, run, and be moved to the dead-letter queue: the constructs allow more.
 */
const GATHERED: Pick<Setting, 'sent' | 'world' | 'invocations'> = {
  sent: [1, 2, 3],
  world: { batchSize: 3, maxReceiveCount: 7 },
  invocations: 1,
};

const SETTINGS: readonly Setting[] = [
  { name: 'a forwarded event, delivered twice', sent: [1], world: { copies: 2 } },
  { name: 'a forwarded event, in two workers at once', sent: [1], world: { twice: true } },
  {
    name: 'a forwarded event, to a target that drops duplicates and has it of another bridge',
    sent: [1],
    world: { copies: 2 },
    deduplicates: true,
  },
  { name: 'forwarded events, two in one call', ...GATHERED },
  { name: 'forwarded events, each in its call', ...GATHERED, entriesMax: 1 },
  { name: 'forwarded events, one of which the target refuses', ...GATHERED, refuses: 2 },
  {
    name: 'forwarded events, one of which makes the target refuse their call',
    ...GATHERED,
    refuses: 2,
    refusesAll: true,
  },
  { name: 'strict: two forwarded events in the wrong order', sent: [2, 1], order: {} },
  {
    name: 'strict: forwarded events in one batch',
    ...GATHERED,
    sent: [3, 1, 2],
    world: { batchSize: 3 },
    order: {},
  },
  {
    name: 'strict, skips: a forwarded event that the target refuses',
    sent: [2, 1],
    refuses: 1,
    order: { onReject: 'skip' },
  },
  {
    name: 'strict, skips: a forwarded event whose attempts are exhausted',
    sent: [1, 2],
    once: true,
    order: { onReject: 'skip' },
  },
];

export function bridgeScenarios(bounds: Bounds, tamper: BridgeTamper = {}): Scenario[] {
  return SETTINGS.map((setting) => scenarioOf(setting, bounds, tamper));
}

function scenarioOf(setting: Setting, { budget, actors }: Bounds, tamper: BridgeTamper): Scenario {
  const { sent, order, once = false, invocations = 2 } = setting;
  const { tamperTarget = (to) => to, tamperBridge = (handler) => handler, ...tampers } = tamper;
  const [first, ...others] = sent;
  return {
    name: `bridge: ${setting.name}`,
    budget,
    begin: async (scheduler: Scheduler) => {
      const target = memoryTarget(setting, (entry) => {
        const wrong = changed(entry, details);
        if (wrong !== undefined) world.violate(wrong);
      });
      const world = await consumerWorld(scheduler, {
        event: numbered(first),
        others: others.map(numbered),
        handler: (_parts, actor) => tamperBridge(bridgeTo(target, setting, actor, tamperTarget)),
        ...(order && {
          maxReceiveCount: RECEIVES,
          config: { order: strict(order), maxReceives: RECEIVES, ...(once && { maxAttempts: 1 }) },
        }),
        ...setting.world,
        ...tampers,
      });
      const details = world.queue.messages().map(({ body }) => JSON.stringify(JSON.parse(body).detail));
      for (let number = 1; number <= actors; number += 1)
        void world.work(scheduler.actor(`worker ${number}`), invocations);
      return {
        ...world,
        state: (left) => `${world.state(left)} ${[...target.taken].join()}`,
        settle: (again) => void world.work(again.actor('rest'), REST_RECEIVES),
        violation: () => world.violation() ?? contradiction(world, setting, target.taken),
        verdict: () => unsettled(world, setting),
      };
    },
  };
}

/** The messages at the target whose bodies were changed on the way. @param details - the envelopes in the queue, as text */
function changed({ event, body, headers }: BridgedEvent, details: readonly string[]): string | undefined {
  const { eventId, sequence } = event;
  if (!details.includes(body)) return `The target took a body of number ${sequence} that was not sent`;
  return headers.eventId === eventId && JSON.parse(body).eventId === eventId
    ? undefined
    : `The target took number ${sequence} under the id of another event`;
}

/** What the rows claim of the target that is not so, or an arrival that is not next in a strict order. */
function contradiction(
  world: ConsumerWorld,
  { sent, order, refuses, once }: Setting,
  taken: ReadonlySet<string>,
) {
  const ids = new Map(sent.map((number, index) => [number, world.eventIds[index] ?? '']));
  for (const [number, id] of ids) {
    const { status, reason, result } = rowOf(world, id);
    if (status === 'PROCESSED' && !taken.has(id))
      return `Number ${number} is PROCESSED, but the target has not taken it`;
    if (reason === 'BRIDGE_REJECTED' && taken.has(id))
      return `Number ${number} is rejected as refused, but the target took it`;
    if (status === 'PROCESSED' && JSON.parse(String(result ?? '{}')).place?.id !== id)
      return `Number ${number} has no receipt, or that of another event`;
  }
  if (order === undefined || once) return undefined;
  const next = [...ids].filter(([number]) => number !== refuses).toSorted(([a], [b]) => a - b);
  return [...taken].every((id, index) => id === next[index]?.[1])
    ? undefined
    : `The target took the numbers as ${[...taken].map((id) => sent[world.eventIds.indexOf(id)]).join()}`;
}

/** What has not ended as it must: a number that the target never takes is rejected, every other one is processed unless its attempts are exhausted. */
function unsettled(world: ConsumerWorld, { sent, refuses, once }: Setting) {
  const statuses = world.eventIds.map((id) => rowOf(world, id).status);
  for (const [index, number] of sent.entries()) {
    const status = statuses[index];
    const isRight = number === refuses ? status === 'REJECTED' : status === 'PROCESSED';
    if (!isRight && !(once && status === 'REJECTED')) return `Number ${number} is ${String(status)}`;
  }
  if (world.queue.messages().length > 0) return 'A message is left in the queue';
  const dead = world.queue.deadLetters().length;
  const rejected = statuses.filter((status) => status === 'REJECTED').length;
  return dead === rejected ? undefined : `${rejected} are rejected, and ${dead} are dead letters`;
}

function rowOf({ memory, config }: ConsumerWorld, eventId: string): Item {
  return memory.item(inboxKey(config.consumer, eventId)) ?? {};
}
