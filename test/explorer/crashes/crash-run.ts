import type { Item } from '../../../lambdas/runtime/store/table.ts';
import type { Budget, Scheduler, World } from '../../../testing/explorer/actor.ts';
import { type ConsumerWorld, consumerWorld } from '../../../testing/explorer/consumer-world.ts';
import { createScheduler } from '../../../testing/explorer/scheduler.ts';
import { type Guide, replay } from '../../../testing/explorer/search.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { bridgeTo, memoryTarget } from '../bridge-target.ts';
import { numbered } from '../order-scenarios.ts';
import { relayWorld } from '../relay-world.ts';
import { type CrashCase, chargeOrder, type Turn } from './crash-cases.ts';
import { type CrashStep, type Rows, recorder } from './crash-steps.ts';

/** The schedule of one case, and what was true when the system had come to rest. */
export interface CrashTrace {
  readonly id: string;
  readonly part: CrashCase['part'];
  readonly title: string;
  readonly about: string;
  readonly steps: readonly CrashStep[];
  /** The counts at the end, by what was counted. */
  readonly counts: Readonly<Record<string, number>>;
  /** The guarantee that is broken, as the explorer's rules state it; absent where none is. */
  readonly broken?: string;
}

/** In the middle of a minute, as every schedule of the explorer. */
const START = Date.UTC(2026, 0, 15, 12, 0, 20);

/** More than any case spends: its turns alone decide what goes wrong. */
const BUDGET: Budget = { faults: 2, stalls: 2 };

const NOTHING: Budget = { faults: 0, stalls: 0 };

interface Stage extends World {
  readonly rows: () => Rows;
  readonly counts: () => Record<string, number>;
  settle(): void;
  verdict(): string | undefined;
}

/**
 * Runs the one schedule of a case.
 *
 * @throws Error If a turn of the case was never possible: the protocol has changed, and so must the case.
 */
export async function runCrash(crash: CrashCase): Promise<CrashTrace> {
  const scheduler = createScheduler(START);
  const stage = await stageOf(crash, scheduler);
  const { steps, world } = recorder(scheduler, stage, stage.rows);
  const guide = directed(crash.turns);
  let end = await scheduler.run(world, guide, BUDGET);
  if (guide.left() > 0) throw new Error(`${crash.id}: turn ${guide.left()} from the end was never possible`);
  if (end === 'over') {
    stage.settle();
    end = await scheduler.run(world, replay([]), NOTHING);
  }
  const broken = scheduler.violated() ?? stage.verdict();
  if (end !== 'over' && broken === undefined) throw new Error(`${crash.id} ended as "${end}"`);
  const { id, part, title, about } = crash;
  return { id, part, title, about, steps: steps(), counts: stage.counts(), ...(broken && { broken }) };
}

/** Goes the ordinary way except at the turns, each of which is taken once and in this order. */
function directed(turns: readonly Turn[]): Guide & { left(): number } {
  let taken = 0;
  return {
    left: () => turns.length - taken,
    choose: (_options, _state, _ordinary, ways) => {
      const { at = /./, take } = turns[taken] ?? {};
      const [ordinary = '', ...others] = ways?.() ?? [];
      if (take === undefined || !at.test(ordinary)) return 0;
      const chosen = others.findIndex((way) => take.test(way)) + 1;
      if (chosen > 0) taken += 1;
      return chosen;
    },
  };
}

async function stageOf(crash: CrashCase, scheduler: Scheduler): Promise<Stage> {
  if (crash.part === 'consume') return inbox(crash, scheduler);
  return crash.part === 'bridge' ? bridge(scheduler) : outbox(crash, scheduler);
}

async function outbox(
  crash: Exclude<CrashCase, { part: 'consume' | 'bridge' }>,
  scheduler: Scheduler,
): Promise<Stage> {
  const world = await relayWorld(scheduler, { events: [], ...crash.world });
  void crash.act(world, scheduler);
  const item = (prefix: string) => world.memory.items().find(({ PK }) => String(PK).startsWith(prefix));
  const published = () => world.bus.published().length;
  return {
    ...world,
    rows: () => ({
      ...(crash.world?.events === undefined && { order: item('ORDER#') && 'stored' }),
      'outbox row': outboxText(item('OUTBOX#')),
      bus: published() === 0 ? undefined : `${published()} accepted`,
    }),
    counts: () => ({
      ...(crash.world?.events === undefined && { orders: item('ORDER#') === undefined ? 0 : 1 }),
      'times published': published(),
    }),
    settle: () => world.settle(scheduler),
    verdict: () => world.verdict(scheduler.spent()),
  };
}

async function inbox(crash: Extract<CrashCase, { part: 'consume' }>, scheduler: Scheduler): Promise<Stage> {
  const { workers = 1 } = crash;
  const world = await consumerWorld(scheduler, {
    event: ThingHappened.create({ aggregateId: 'thing-1', data: { n: 1 } }),
    handler: () => chargeOrder,
    config: { visibilityTimeoutMs: 180_000 },
    ...crash.world,
  });
  for (let number = 1; number <= workers; number += 1)
    void world.work(scheduler.actor(`worker ${number}`), 1);
  const row = () => messageRow(world);
  const payments = () => Number(world.memory.item({ PK: 'PAYMENT#1', SK: 'PAYMENT' })?.payments ?? 0);
  const calls = () => [...world.log.happened.values()].reduce((sum, times) => sum + times, 0);
  return {
    ...world,
    rows: () => ({
      ...messageTexts(world.queue.messages()),
      'inbox row': inboxText(row()),
      payment: payments() === 0 ? undefined : 'stored',
      provider: calls() === 0 ? undefined : `${calls() === 1 ? '1 call' : `${calls()} calls`}, one key`,
    }),
    counts: () => ({
      payments: payments(),
      ...(crash.world?.handler === undefined && { 'calls to the provider': calls() }),
      ...(crash.world?.handler === undefined && { 'idempotency keys': world.log.happened.size }),
      'dead letters': world.queue.deadLetters().length,
    }),
    settle: () => void world.work(scheduler.actor(`worker ${workers + 1}`), 60),
    verdict: () => world.unrest() ?? (payments() === 1 ? undefined : `There are ${payments()} payments`),
  };
}

async function bridge(scheduler: Scheduler): Promise<Stage> {
  let arrivals = 0;
  const target = memoryTarget({}, () => {
    arrivals += 1;
  });
  const world = await consumerWorld(scheduler, {
    event: numbered(1),
    handler: (_parts, actor) => bridgeTo(target, {}, actor, (to) => to),
    config: { visibilityTimeoutMs: 180_000 },
  });
  void world.work(scheduler.actor('worker 1'), 1);
  return {
    ...world,
    rows: () => ({
      ...messageTexts(world.queue.messages()),
      'inbox row': inboxText(messageRow(world)),
      target:
        arrivals === 0 ? undefined : `stored ${arrivals === 1 ? 'once' : `${arrivals} times`}, one event id`,
    }),
    counts: () => ({
      'times forwarded': arrivals,
      'event ids': target.taken.size,
      'dead letters': world.queue.deadLetters().length,
    }),
    settle: () => void world.work(scheduler.actor('worker 2'), 60),
    verdict: () =>
      world.unrest() ?? (target.taken.size === 1 ? undefined : 'The target does not have the event'),
  };
}

function messageRow({ memory }: ConsumerWorld): Item | undefined {
  return memory.items().find(({ PK, SK }) => String(PK).startsWith('INBOX#') && SK === 'MESSAGE');
}

function outboxText(row: Item | undefined): string | undefined {
  if (row === undefined) return undefined;
  if (row.status !== 'PENDING') return String(row.status);
  const born = Number(row.leaseUntil) - START;
  return `PENDING, ${born > 0 ? `leased until ${Math.round(born / 1_000)} s` : 'lease expired'}`;
}

function inboxText(row: Item | undefined): string | undefined {
  if (row === undefined) return undefined;
  const { charge } = (row.effects ?? {}) as Record<
    string,
    { readonly status: string; readonly fence: string }
  >;
  const claim = `, token ${workerOf(row.fence)}, lease until ${Math.round((Number(row.leaseUntil) - START) / 1_000)} s`;
  const effect = `, charge ${charge?.status}`;
  const by = charge?.status === 'IN_PROGRESS' ? ` by ${workerOf(charge.fence)}` : '';
  return `${row.status}${row.status === 'PROCESSING' ? claim : ''}${charge === undefined ? '' : effect + by}`;
}

/** A fencing token begins with the number of the worker that drew it: see `scheduled-actor.ts`. */
function workerOf(fence: unknown): string {
  return `f${Number.parseInt(String(fence).slice(0, 2), 16)}`;
}

function messageTexts(messages: readonly { readonly visibleAt: number }[]): Rows {
  const texts = messages.map(({ visibleAt }) =>
    visibleAt <= START ? 'visible' : `hidden until ${Math.round((visibleAt - START) / 1_000)} s`,
  );
  return { queue: texts.join(' and ') || 'empty' };
}
