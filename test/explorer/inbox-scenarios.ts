import type { Clock } from '../../lambdas/runtime/base/clock.ts';
import { PoisonMessage } from '../../lambdas/runtime/base/errors.ts';
import { type Handler, leased, transactional } from '../../lambdas/runtime/consume/handler.ts';
import { discardMessage, resolveMessage } from '../../lambdas/runtime/operations/message-operations.ts';
import type { OperationDeps } from '../../lambdas/runtime/store/operation-record.ts';
import type { Actor, Scheduler } from '../../testing/explorer/actor.ts';
import type { ConsumerWorldOptions } from '../../testing/explorer/consumer-parts.ts';
import { type ConsumerWorld, consumerWorld } from '../../testing/explorer/consumer-world.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import {
  ADD_ONE,
  chargeAgain,
  chargeAndCommit,
  chargeOnly,
  chargeUnawaited,
  commitAndSwallow,
  commitBesideCharge,
  commitOnly,
  commitUnawaited,
  retriedAtOnce,
  returnOnly,
  write,
} from './consumer-handlers.ts';
import { uncharged, verdict } from './inbox-verdict.ts';
import { decides, deskOf, leasesSeenOut, lists, rejectedRows, UNLISTED } from './operator-desk.ts';
import type { Bounds } from './relay-scenarios.ts';

/** Puts something between the code and its ports, to show what happens without one of the rules. */
export interface InboxTamper
  extends Pick<
    ConsumerWorldOptions,
    'tamperTable' | 'tamperQueue' | 'tamperHandler' | 'tamperConsumer' | 'makeConsumer'
  > {
  /** Takes the place of an operator's clock. @default AWS's time */
  readonly tamperClock?: ((operator: Actor) => Clock) | undefined;
}

/** The longest that a queue takes to come to rest, in receives. */
const REST_RECEIVES = 60;

/** What a fixed consumer does, and what it did before. */
interface Release {
  mended: boolean;
}

interface Setting {
  readonly name: string;
  readonly handler: (release: Release) => Handler;
  readonly world?: Partial<ConsumerWorldOptions>;
  /** How many invocations each worker makes. @default 1 */
  readonly invocations?: number;
  /** Whether an operator fixes the handler and redrives. @default it is right from the beginning */
  readonly mends?: boolean;
  /** What else acts. @param desk - what the operator's command is made of */
  readonly operator?: (world: ConsumerWorld, operator: Actor, desk: OperationDeps) => Promise<void>;
  /** How far the operator's own clock is ahead, milliseconds. @default 0 */
  readonly operatorAheadMs?: number;
  /** How often the effect may eventually have been applied. @default exactly once */
  readonly applied?: readonly number[];
  /** Whether there is an effect, which must have happened unless an operator has settled the message. @default false */
  readonly charges?: boolean;
  /** How far the second worker's clock is ahead, milliseconds. @default 0 */
  readonly skewMs?: number;
}

const SETTINGS: readonly Setting[] = [
  { name: 'an effect and a commit', handler: () => chargeAndCommit, charges: true },
  {
    name: 'a handler that swallows a lost answer',
    handler: () => commitAndSwallow,
  },
  { name: 'a commit, delivered twice', handler: () => commitOnly, world: { copies: 2 } },
  { name: 'a result, delivered twice', handler: () => returnOnly, world: { copies: 2 }, applied: [0] },
  {
    name: 'an effect, delivered twice',
    handler: () => chargeOnly,
    charges: true,
    world: { copies: 2 },
    applied: [0],
  },
  {
    name: 'an effect that its handler does not await',
    handler: () => chargeUnawaited,
    charges: true,
    applied: [0],
  },
  { name: 'a commit that its handler does not await', handler: () => commitUnawaited },
  { name: 'a commit beside an effect', handler: () => commitBesideCharge, charges: true },
  { name: 'an effect that is tried again', handler: () => chargeAgain, charges: true, applied: [0] },
  { name: 'a transactional handler, delivered once', handler: () => write },
  { name: 'a transactional handler', handler: () => write, world: { copies: 2 } },
  {
    name: 'an effect and a commit, in two workers at once',
    handler: () => chargeAndCommit,
    charges: true,
    world: { twice: true },
  },
  {
    name: 'a result, in two workers at once',
    handler: () => returnOnly,
    applied: [0],
    world: { twice: true },
  },
  {
    name: 'a transactional handler, in two workers at once',
    handler: () => write,
    world: { twice: true },
  },
  {
    name: 'attempts spent in two workers at once, then redriven',
    handler: failsUntilMended,
    world: { twice: true, config: { maxAttempts: 2 }, maxReceiveCount: 5 },
    mends: true,
  },
  {
    name: 'a visibility change that may come late',
    handler: () => retriedAtOnce,
    invocations: 2,
  },
  {
    name: 'a clock that is ahead',
    handler: () => chargeAndCommit,
    charges: true,
    world: { copies: 2 },
    skewMs: 1_900,
  },
  {
    name: 'a clock that is behind',
    handler: () => chargeAndCommit,
    charges: true,
    world: { copies: 2 },
    skewMs: -1_900,
  },
  {
    name: 'poison, fixed and redriven',
    handler: ({ mended }) =>
      transactional(ThingHappened, async () => {
        if (!mended) throw new PoisonMessage('not yet known');
        return ADD_ONE;
      }),
    world: { copies: 2, maxReceiveCount: 2 },
    mends: true,
  },
  {
    name: 'attempts spent, fixed and redriven',
    handler: failsUntilMended,
    world: { config: { maxAttempts: 2 }, maxReceiveCount: 5 },
    invocations: 2,
    mends: true,
  },
  {
    name: 'a redrive after attempts spent',
    handler: () => commitOnly,
    world: { items: rejectedRows },
  },
  {
    name: 'an operator who resolves',
    handler: () => commitOnly,
    applied: [0, 1],
    operator: decides(resolveMessage),
  },
  {
    name: 'an operator who resolves by force',
    handler: () => commitOnly,
    world: { mayForce: true },
    applied: [0, 1],
    operator: decides((deps, resolution) =>
      resolveMessage(deps, { ...resolution, force: true, effectsChecked: true }),
    ),
  },
  {
    name: 'an operator who resolves what may charge, by force and without a check',
    handler: () => chargeAndCommit,
    charges: true,
    world: { mayForce: true },
    applied: [0, 1],
    operator: decides((deps, resolution) => resolveMessage(deps, { ...resolution, force: true })),
  },
  {
    name: 'an operator whose clock is ahead',
    handler: () => commitOnly,
    applied: [0, 1],
    operator: decides(resolveMessage),
    operatorAheadMs: 33_000, // a lease, the margin, and a second
  },
  {
    name: 'an operator who discards',
    handler: () => commitOnly,
    applied: [0, 1],
    operator: decides(discardMessage),
  },
  {
    name: 'an operator who discards what is redriven',
    handler: () => commitOnly,
    world: { items: rejectedRows },
    applied: [0, 1],
    operator: decides(discardMessage),
  },
  {
    name: 'an operator who lists a rejected message while it is redriven',
    handler: () => commitOnly,
    world: UNLISTED,
    operator: lists,
  },
];

/** A handler that fails in each attempt, until an operator has deployed its next release. */
function failsUntilMended({ mended }: Release): Handler {
  return leased(ThingHappened, async (_event, ctx) => {
    if (!mended) throw new Error('down');
    await ctx.commit(ADD_ONE);
  });
}

export function inboxScenarios(bounds: Bounds, tamper: InboxTamper = {}): Scenario[] {
  return SETTINGS.map((setting) => scenarioOf(setting, bounds, tamper));
}

function scenarioOf(setting: Setting, { budget, actors }: Bounds, tamper: InboxTamper): Scenario {
  const { invocations = 1, mends = false, applied = [1], charges = false } = setting;
  return {
    name: `inbox: ${setting.name}`,
    budget,
    begin: async (scheduler: Scheduler) => {
      const release: Release = { mended: !mends };
      const world = await consumerWorld(scheduler, {
        event: ThingHappened.create({ aggregateId: 'thing-1', data: { n: 1 } }),
        handler: () => setting.handler(release),
        ...setting.world,
        ...tamper,
      });
      for (let number = 1; number <= actors; number += 1) {
        const worker = scheduler.actor(`worker ${number}`);
        if (number === 2) worker.skewBy(setting.skewMs ?? 0);
        void world.work(worker, invocations);
      }
      const operator = scheduler.actor('operator');
      const mend = () =>
        operator.step('fixes the handler and redrives', () => {
          release.mended = true;
          world.queue.redrive();
        });
      if (mends) void mend();
      operator.skewBy(setting.operatorAheadMs ?? 0);
      const desk = deskOf(operator, world.tableOf(operator), () => scheduler.now());
      void setting.operator?.(world, operator, {
        ...desk,
        clock: tamper.tamperClock?.(operator) ?? desk.clock,
      });

      async function rest(worker: Actor): Promise<void> {
        await world.work(worker, REST_RECEIVES);
        if (world.queue.deadLetters().length === 0 || !mends) return;
        await mend();
        await world.work(worker, REST_RECEIVES);
      }

      return {
        ...world,
        state: (left) => `${world.state(left)} ${release.mended}`,
        deadlines: () => [
          ...world.deadlines(),
          ...(setting.operator === undefined ? [] : leasesSeenOut(world)),
        ],
        settle: (again) => void rest(again.actor('rest')),
        verdict: () => verdict(world, applied) ?? uncharged(world, charges),
      };
    },
  };
}
