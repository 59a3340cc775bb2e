import { z } from 'zod/mini';
import { isMailroomError, PoisonMessage } from '../../lambdas/runtime/base/errors.ts';
import { latest, strict } from '../../lambdas/runtime/base/order.ts';
import { DAY_MS, HOUR_MS } from '../../lambdas/runtime/base/units.ts';
import { type Handler, leased, transactional } from '../../lambdas/runtime/consume/handler.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import type { Settlement } from '../../lambdas/runtime/inbox/settle-message.ts';
import {
  allowTooOld,
  discardMessage,
  resolveMessage,
} from '../../lambdas/runtime/operations/message-operations.ts';
import { seedSequence, skipSequence } from '../../lambdas/runtime/operations/order-operations.ts';
import { orderSeed } from '../../lambdas/runtime/store/dynamo/order-seed.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import { inboxKey, lastKey } from '../../lambdas/runtime/store/keys.ts';
import type { OperationDeps } from '../../lambdas/runtime/store/operation-record.ts';
import type { Key, Table, Update } from '../../lambdas/runtime/store/table.ts';
import type { Actor, Scheduler } from '../../testing/explorer/actor.ts';
import type { ConsumerWorldOptions } from '../../testing/explorer/consumer-parts.ts';
import { type ConsumerWorld, consumerWorld } from '../../testing/explorer/consumer-world.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { charge } from './consumer-handlers.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import { decides, deskOf, leasesSeenOut } from './operator-desk.ts';
import type { Bounds } from './relay-scenarios.ts';

export const Numbered = defineEvent({
  source: 'things',
  type: 'Numbered',
  version: 1,
  aggregateType: 'Thing',
  schema: z.object({}),
  sequence: true,
});

export const numbered = (sequence: number) => Numbered.create({ aggregateId: 'thing-1', data: {}, sequence });

/** The same type of the same aggregate, of another service. */
const Elsewhere = defineEvent({ ...Numbered, source: 'shelves' });

/** The state of the aggregate: the numbers that were applied, in the order in which they were. */
const STATE = { PK: 'STATE#1', SK: 'STATE' };

/** The same, of the other service. */
const STATE_ELSEWHERE = { PK: 'STATE#2', SK: 'STATE' };

/** The receives of a message whose predecessor may take its time. */
const RECEIVES = 20;

/** The longest that a queue takes to come to rest, in receives. */
const REST_RECEIVES = 200;

/** The maximum number of redrives until every number is applied. */
const REDRIVES = 4;

/** The deployed handler, which refuses a number until it is fixed. */
interface Release {
  isFixed: boolean;
}

interface Setting {
  readonly name: string;
  /** The numbers, in the order in which they are sent. */
  readonly sent: readonly [number, ...number[]];
  readonly mode: 'strict' | 'latest';
  readonly handler: (table: Table, release: Release) => Handler;
  readonly world?: Partial<ConsumerWorldOptions>;
  /** The numbers that the state may have at the end. @default all of a strict order */
  readonly applied?: readonly (readonly number[])[];
  /** The last number at the end. @default the greatest that was sent */
  readonly last?: number;
  /** An operator fixes the handler and redrives. @default false */
  readonly fixes?: boolean;
  /** A number of the same type and aggregate of another service, which is always applied. @default none */
  readonly elsewhere?: number;
  /** An operator's action before each redrive, once the queue has settled. @default nothing */
  readonly remedy?: (world: ConsumerWorld, desk: OperationDeps) => Promise<unknown>;
  /** An operator beside the workers. @default none */
  readonly operator?: (world: ConsumerWorld, operator: Actor, desk: OperationDeps) => Promise<void>;
  /** A further check at the end. @default none */
  readonly verdict?: (world: ConsumerWorld) => string | undefined;
}

/** Reads the state, and writes it with one more number: without a condition, so that only the order protects it. */
async function next(table: Table, sequence: number, state: Key = STATE) {
  const row = await table.get(state, { consistent: true });
  const applied = [...((row?.applied as number[] | undefined) ?? []), sequence];
  return { writes: [{ Put: { Item: { ...state, applied } } }] };
}

const writes = (table: Table) => transactional(Numbered, async ({ sequence }) => next(table, sequence));

const commits = (table: Table) =>
  leased(Numbered, async ({ sequence }, ctx) => ctx.commit(await next(table, sequence)));

/** A side effect for each number, before its commit. */
const charges = (table: Table) =>
  leased(Numbered, async ({ sequence }, ctx) => {
    await charge(ctx);
    await ctx.commit(await next(table, sequence));
  });

/** Its handling of a refused commit must not decide about the message. */
const swallows = (table: Table) =>
  leased(Numbered, async ({ sequence }, ctx) => {
    await ctx.commit(await next(table, sequence)).catch((error: unknown) => {
      if (!isMailroomError(error, 'OUT_OF_ORDER')) throw error;
    });
  });

/** Starts an effect if its commit is refused: for a superseded event, it must not happen. */
const compensates = (table: Table) =>
  leased(Numbered, async ({ sequence }, ctx) => {
    await ctx.commit(await next(table, sequence)).catch(async (error: unknown) => {
      if (!isMailroomError(error, 'OUT_OF_ORDER')) throw error;
      await charge(ctx).catch(() => {});
    });
  });

/** Number 1 is refused until it is fixed. */
const refusesFirst = (table: Table, release: Release) =>
  transactional(Numbered, async ({ sequence }) => {
    if (sequence === 1 && !release.isFixed) throw new PoisonMessage('The first one is refused');
    return next(table, sequence);
  });

/** As {@link refusesFirst}, under a claim. */
const refusesFirstClaimed = (table: Table, release: Release) =>
  leased(Numbered, async ({ sequence }, ctx) => {
    if (sequence === 1 && !release.isFixed) throw new PoisonMessage('The first one is refused');
    await ctx.commit(await next(table, sequence));
  });

const SKIPS = { config: { order: strict({ onReject: 'skip' }), maxReceives: RECEIVES } };

/** Events that are older than the inbox retention. */
const OLD = { ageMs: 40 * DAY_MS };

const superseded = (world: ConsumerWorld) =>
  rowOf(world, 0)?.supersededBy === undefined ? 'The rejected number was not superseded' : undefined;

/** A setting, where it is not {@link USUAL}. */
type NamedSetting = Omit<Setting, 'sent' | 'mode'> & Partial<Setting>;

const USUAL = { sent: [1, 2], mode: 'strict' } as const;

const SETTINGS: readonly NamedSetting[] = [
  { name: 'strict: two numbers', handler: writes },
  { name: 'strict: two numbers in the wrong order, leased', sent: [2, 1], handler: commits },
  {
    name: 'strict: three numbers in one batch',
    sent: [3, 1, 2],
    handler: writes,
    world: { batchSize: 3 },
  },
  {
    name: 'strict: a number that is sent again',
    handler: commits,
    world: { copies: 2 },
  },
  {
    name: 'strict: a number that is delivered twice at once',
    handler: writes,
    world: { twice: true },
  },
  {
    name: 'strict: a handler that only returns',
    handler: () => leased(Numbered, async () => 'done'),
    applied: [[]],
  },
  { name: 'latest: two numbers', mode: 'latest', handler: writes },
  { name: 'latest: two numbers, leased', sent: [2, 1], mode: 'latest', handler: commits },
  {
    name: 'latest: two numbers, to a handler that swallows',
    mode: 'latest',
    handler: swallows,
  },
  {
    name: 'latest: two numbers, to a handler that compensates for a refused commit',
    mode: 'latest',
    handler: compensates,
    verdict: ({ log }) => (log.happened.size === 0 ? undefined : 'An effect of a superseded event happened'),
  },
  {
    name: 'latest: two numbers, to a handler that only returns',
    mode: 'latest',
    handler: () => leased(Numbered, async () => 'done'),
    applied: [[]],
  },
  {
    name: 'latest: a number, and a lower one of another service',
    sent: [2],
    elsewhere: 1,
    mode: 'latest',
    handler: commits,
  },
  {
    name: 'strict: two numbers, and one of another service',
    elsewhere: 1,
    handler: writes,
  },
  {
    name: 'strict, skips: numbers that may have been applied, allowed and redriven',
    handler: writes,
    world: { ...OLD, ...SKIPS, maxReceiveCount: 2, config: { ...SKIPS.config, maxReceives: 2 } },
    fixes: true,
    remedy: allowsAll,
  },
  {
    name: 'strict: a number that may have been applied, skipped and redriven',
    sent: [1],
    handler: writes,
    world: { ...OLD, maxReceiveCount: 2 },
    fixes: true,
    remedy: setsLast(skipSequence, 1),
    applied: [[]],
    verdict: superseded,
  },
  {
    name: 'strict: an operator who seeds over a gap',
    sent: [1, 4],
    handler: commits,
    world: { maxReceiveCount: 2 },
    fixes: true,
    remedy: setsLast(seedSequence, 3),
    applied: [[1, 4], [4]],
    operator: changesTo(seedSequence, 3),
  },
  {
    name: 'strict: a gap until the last receive, then a redrive of all',
    sent: [3, 2, 1],
    handler: refusesFirst,
    world: { maxReceiveCount: 3 },
    fixes: true,
  },
  {
    name: 'strict, skips: a rejected number, and its redrive',
    handler: refusesFirst,
    world: SKIPS,
    fixes: true,
    applied: [[2]],
    verdict: superseded,
  },
  {
    name: 'strict, skips: a number that is rejected under its claim, in two workers at once',
    handler: refusesFirstClaimed,
    world: { ...SKIPS, twice: true },
    fixes: true,
    applied: [[2]],
    verdict: superseded,
  },
  {
    name: 'strict, skips: a gap until the last receive, then a redrive',
    sent: [2, 1],
    handler: writes,
    world: { config: { order: strict({ onReject: 'skip' }), maxReceives: 1 }, maxReceiveCount: 1 },
    fixes: true,
  },
  {
    name: 'strict: effects and commits',
    sent: [2, 1],
    handler: charges,
    verdict: ({ log }) => (log.happened.size === 2 ? undefined : `There are ${log.happened.size} effects`),
  },
  {
    name: 'strict: an operator who skips the first number',
    handler: writes,
    applied: [[1, 2], [2]],
    operator: changesFirst(skipSequence),
  },
  {
    name: 'strict: an operator who skips the first number, which is refused and redriven',
    handler: refusesFirst,
    world: { maxReceiveCount: 3 },
    fixes: true,
    applied: [[1, 2], [2]],
    operator: changesFirst(skipSequence),
  },
  {
    name: 'strict: an operator who seeds the first number',
    handler: writes,
    applied: [[1, 2], [2]],
    operator: changesFirst(seedSequence),
  },
  {
    name: 'strict: a backfill that writes the state with its number',
    handler: writes,
    operator: backfills,
  },
  {
    name: 'strict: an operator who resolves the first number, which is refused',
    handler: refusesFirst,
    world: { maxReceiveCount: 3 },
    fixes: true,
    applied: [[1, 2], [2]],
    operator: settles(resolveMessage, 1, 'strict'),
  },
  {
    name: 'strict: a replay of the archive',
    handler: writes,
    operator: async ({ queue }, operator) => {
      const bodies = queue.messages().map((message) => message.body);
      await operator.step('replays', () => {
        for (const body of bodies.toReversed()) queue.send(JSON.parse(body));
      });
    },
  },
  {
    name: 'strict: a replay of the archive after the inbox rows have expired',
    handler: writes,
    operator: async (world, operator) => {
      const { queue, expire } = world;
      const bodies = queue.messages().map((message) => message.body);
      await operator.clock.sleep(HOUR_MS);
      // SQS keeps no message until its event is too old, so each has ended before.
      if (bodies.some((_body, index) => rowOf(world, index)?.status !== 'PROCESSED')) return;
      await expire(operator);
      await operator.step('replays', () => {
        for (const body of bodies.toReversed()) queue.send(JSON.parse(body));
      });
    },
  },
  {
    name: 'strict: an operator who resolves the first number',
    handler: commits,
    applied: [[1, 2], [2]],
    operator: settles(resolveMessage, 1, 'strict'),
  },
  {
    name: 'strict: an operator who resolves the second number early',
    sent: [2, 1],
    handler: commits,
    applied: [[1, 2], [1]],
    operator: settles(resolveMessage, 2, 'strict'),
  },
  {
    name: 'strict: an operator who discards the first number, which is refused',
    handler: refusesFirst,
    world: { maxReceiveCount: 3 },
    fixes: true,
    applied: [[1, 2], [2]],
    operator: settles(discardMessage, 1, 'strict'),
  },
  {
    name: 'latest: an operator who resolves the first number',
    mode: 'latest',
    handler: commits,
    operator: settles(resolveMessage, 1, 'latest'),
  },
];

/** An operator who passes over or seeds the first number, at any time. */
function changesFirst(change: typeof skipSequence): NonNullable<Setting['operator']> {
  return changesTo(change, 1);
}

/** An operator who sets the last number, at any time. */
function changesTo(change: typeof skipSequence, sequence: number): NonNullable<Setting['operator']> {
  return async (world, operator, desk) => {
    await operator.step('looks at the sequence', () => {});
    await operator.invoke(60_000, () => setsLast(change, sequence)(world, desk));
  };
}

function setsLast(change: typeof skipSequence, sequence: number): NonNullable<Setting['remedy']> {
  return ({ config }, desk) =>
    change(desk, { key: keyOf(config.consumer, 'strict'), sequence }, { by: 'ada', reason: 'lost' });
}

/** An operator who knows that no event was applied before. */
async function allowsAll({ config: { consumer }, eventIds }: ConsumerWorld, desk: OperationDeps) {
  for (const eventId of eventIds)
    await allowTooOld(desk, { consumer, eventId, by: 'ada', reason: 'not applied' }).catch(() => {});
}

/** A backfill of the state that the first number leaves, at any time: it happens where nothing was applied before. */
async function backfills({ config, tableOf }: ConsumerWorld, actor: Actor): Promise<void> {
  await actor.step('begins a backfill', () => {});
  const { clock, random } = actor;
  const outbox = createOutbox({ config, table: tableOf(actor), clock, random });
  const { consumer } = config;
  const { Update } = orderSeed({
    source: 'things',
    consumer,
    aggregateType: 'Thing',
    aggregateId: 'thing-1',
    last: 1,
  });
  const values = { ...Update?.ExpressionAttributeValues, ':at': clock.now() }; // each schedule must repeat
  const seed = { Update: { ...(Update as Update), ExpressionAttributeValues: values } };
  const state = { Put: { Item: { ...STATE, applied: [1] } } };
  await actor.invoke(60_000, () => outbox.commit({ writes: [state, seed] }).catch(() => {}));
}

/** An operator who settles the first message, which may have no row. */
function settles(
  decision: (deps: OperationDeps, settlement: Settlement) => Promise<unknown>,
  sequence: number,
  mode: 'strict' | 'latest',
): Setting['operator'] {
  return decides((deps, settlement) => {
    const order = { key: keyOf(settlement.consumer, mode), mode, sequence };
    return decision(deps, { ...settlement, order });
  });
}

/** The key of the aggregate's last number. */
function keyOf(consumer: string, mode: 'strict' | 'latest'): string {
  const group = mode === 'strict' ? mode : Numbered.type;
  return lastKey({ source: 'things', consumer, group, aggregateType: 'Thing', aggregateId: 'thing-1' }).PK;
}

/** The row of the message that was sent as this one. */
function rowOf({ memory, config, eventIds }: ConsumerWorld, index: number) {
  return memory.item(inboxKey(config.consumer, eventIds[index] ?? ''));
}

export function orderScenarios(bounds: Bounds, tamper: InboxTamper = {}): Scenario[] {
  return SETTINGS.map((setting) => scenarioOf({ ...USUAL, ...setting }, bounds, tamper));
}

function scenarioOf(setting: Setting, { budget, actors }: Bounds, tamper: InboxTamper): Scenario {
  const { sent, mode, fixes = false, handler, elsewhere, remedy } = setting;
  const [first, ...others] = sent;
  return {
    name: `inbox: ${setting.name}`,
    budget,
    begin: async (scheduler: Scheduler) => {
      const release: Release = { isFixed: false };
      const maxReceiveCount = setting.world?.maxReceiveCount ?? RECEIVES;
      const world = await consumerWorld(scheduler, {
        event: numbered(first),
        others: [
          ...others.map(numbered),
          ...(elsewhere === undefined
            ? []
            : [Elsewhere.create({ aggregateId: 'thing-1', data: {}, sequence: elsewhere })]),
        ],
        handler: ({ table }) => [
          handler(table, release),
          transactional(Elsewhere, async ({ sequence }) => next(table, sequence, STATE_ELSEWHERE)),
        ],
        maxReceiveCount,
        ...setting.world,
        config: {
          ...(mode === 'strict' ? { order: strict(), maxReceives: maxReceiveCount } : { order: latest() }),
          ...setting.world?.config,
        },
        ...tamper,
      });
      for (let number = 1; number <= actors; number += 1)
        void world.work(scheduler.actor(`worker ${number}`), 2);
      if (setting.operator !== undefined) {
        const operator = scheduler.actor('operator');
        void setting.operator(
          world,
          operator,
          deskOf(operator, world.tableOf(operator), () => scheduler.now()),
        );
      }

      async function rest(worker: Actor): Promise<void> {
        await world.work(worker, REST_RECEIVES);
        for (let redrives = 0; fixes && redrives < REDRIVES; redrives += 1) {
          if (remedy !== undefined) {
            const desk = deskOf(worker, world.tableOf(worker), () => scheduler.now());
            await worker.invoke(60_000, () => remedy(world, desk));
          }
          await worker.step('fixes the handler and redrives', () => {
            release.isFixed = true;
            world.queue.redrive();
          });
          await world.work(worker, REST_RECEIVES);
        }
      }

      return {
        ...world,
        state: (left) => `${world.state(left)} ${release.isFixed}`,
        deadlines: () => [
          ...world.deadlines(),
          ...(setting.operator === undefined ? [] : leasesSeenOut(world)),
        ],
        settle: (again) => void rest(again.actor('rest')),
        verdict: () => world.unrest() ?? verdict(world, setting) ?? setting.verdict?.(world),
      };
    },
  };
}

/** What is wrong at the end with the numbers that were applied: in both modes, each commit is in the state, and in order. */
function verdict(
  world: ConsumerWorld,
  { sent, mode, elsewhere, applied: allowed }: Setting,
): string | undefined {
  const { memory, config } = world;
  const applied = ((memory.item(STATE)?.applied as number[] | undefined) ?? []).join();
  const last = memory.item({ PK: keyOf(config.consumer, mode), SK: 'LAST' })?.last;
  if (elsewhere !== undefined && String(memory.item(STATE_ELSEWHERE)?.applied) !== String(elsewhere))
    return 'The number of the other service was not applied';
  if (last !== Math.max(...sent)) return `The last number is ${String(last)}`;
  const inOrder = sent.toSorted((a, b) => a - b);
  const writesNone = allowed?.some((numbers) => numbers.length === 0) ?? false;
  const committed = inOrder.filter((n) => {
    const row = rowOf(world, sent.indexOf(n));
    const isPassedOver = row?.supersededBy !== undefined || row?.resolvedBy !== undefined;
    return row?.status === 'PROCESSED' && !isPassedOver && !writesNone;
  });
  const possible = allowed ?? (mode === 'strict' ? [inOrder] : subsets(inOrder));
  const isRight = possible.some((numbers) => numbers.join() === applied);
  return isRight && committed.every((n) => applied.split(',').includes(String(n)))
    ? undefined
    : `The numbers were applied as ${applied || 'none'}, and ${committed.join() || 'none'} were committed`;
}

/** Every part of a list that has its last member. */
function subsets(numbers: readonly number[]): number[][] {
  const [first, ...rest] = numbers;
  if (first === undefined) return [];
  if (rest.length === 0) return [[first]];
  return subsets(rest).flatMap((one) => [one, [first, ...one]]);
}
