import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { nameProblems, type PropNames } from '../../lambdas/runtime/base/given-names.ts';
import type { Handler } from '../../lambdas/runtime/consume/handler.ts';
import type { EventDraft } from '../../lambdas/runtime/events/event.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import type { KeyNames } from '../memory-store.ts';
import type { MemoryTable } from '../memory-table.ts';
import type { ExploredParts } from './consumer-parts.ts';
import { consumerWorld } from './consumer-world.ts';
import {
  exploreScenario,
  replaySchedule,
  type Scenario,
  timelineText,
  type Violation,
} from './exploration.ts';
import { worldDigest } from './world-digest.ts';

/** Options for exploring a handler. */
export interface ExploreOptions<W> {
  /** The event to pass to the handler. */
  readonly event: EventDraft;
  /**
   * Other events of the handler, each in one message of the same batch: at most 9, for a `transactionalBatch` handler. @default none
   */
  readonly others?: readonly EventDraft[] | undefined;
  /** Checks the table at the end of each schedule, and throws if, for example, a write was made twice or not at all. */
  readonly check: (table: MemoryTable, world: W) => void;
  /**
   * Creates the handler's dependencies other than its table, such as a fake provider, once per schedule.
   *
   * Schedules that reach the same state are explored only once, so keep the world's state where it can be compared: in fields,
   * arrays, Maps, Sets and dates, nested as you like. State in closures and private fields (`#balance`) is invisible unless a
   * `toJSON` method returns it. Keep values that never repeat, such as random values or times, out of the world: no two states
   * would be equal.
   *
   * @default no dependencies
   */
  readonly world?: (() => W) | undefined;
  /** Items in the Mailroom table at the start. @default none */
  readonly items?: readonly Item[] | undefined;
  /** Other tables of the service: the names of their key attributes, by table name. @default none */
  readonly otherTables?: Readonly<Record<string, KeyNames>> | undefined;
  /** The number of workers that have the message at the same time. @default 2 */
  readonly workers?: number | undefined;
  /** The number of messages that carry the event. @default 1: the second worker receives it when it is redelivered */
  readonly copies?: number | undefined;
  /**
   * The maximum number of crashes, failed calls, lost responses and stale answers to eventually consistent reads in one schedule.
   *
   * @default 1
   */
  readonly faults?: number | undefined;
  /** The number of times that time may pass during a call, so that leases run out. @default 0 */
  readonly stalls?: number | undefined;
  /**
   * The maximum number of deviations in one schedule: faults, stalls, and switches to another worker. It bounds the time of an
   * exploration; `Infinity` explores every schedule within the other limits.
   *
   * @default `faults` + `stalls` + 1: all of them, and one switch
   */
  readonly deviations?: number | undefined;
  /** Runs only the schedule that a failure reported. @default all schedules */
  readonly seed?: string | undefined;
}

const NAMES: PropNames<ExploreOptions<unknown>> = {
  event: 'required',
  others: 'optional',
  check: 'required',
  world: 'optional',
  items: 'optional',
  otherTables: 'optional',
  workers: 'optional',
  copies: 'optional',
  faults: 'optional',
  stalls: 'optional',
  deviations: 'optional',
  seed: 'optional',
};

/** The result of exploring a handler. */
export interface ExploreReport {
  /** The number of schedules run. */
  readonly schedules: number;
  /** The distinct steps at which a worker crashed. */
  readonly crashPoints: number;
}

/**
 * Runs a consumer's handler through every schedule within its limits: two workers on one message, with a switch between any two of
 * their calls; a crash before and after each call, including each `ctx.once` effect; calls that fail, lose their response, or take
 * effect late; reads without `consistent: true` that are stale; leases that run out. After each schedule the system may settle, and its
 * final state must be correct: the message is PROCESSED, the dead-letter queue is empty, no effect ran again once its result was
 * stored, ran in two workers at once, or changed its name in a later attempt, and `check` passes.
 *
 * The handler must be deterministic: no clock, random values or state of its own between schedules. It reads and writes only
 * through the table that it receives, or through `ctx`.
 *
 * @param handler - a handler, or a function that creates one from the table that it reads, and from `world`
 * @throws `BAD_ARGUMENT` for an option that is missing or does not exist, or more than 9 `others`
 * @throws `SCHEDULE_BROKEN` with the schedule as a timeline, and the seed that replays it
 *
 * @example
 * ```ts
 * test('charges once, whatever crashes', async () => {
 *   await explore(chargeHandler, {
 *     event: OrderPlaced.create({ aggregateId: '42', data }),
 *     check: (table) => expect(table.item({ PK: 'PAYMENT#42', SK: 'PAYMENT' })).toMatchObject({ charges: 1 }),
 *   });
 * });
 * ```
 */
export async function explore<W = undefined>(
  handler: Handler | ((parts: ExploredParts, world: W) => Handler),
  options: ExploreOptions<W>,
): Promise<ExploreReport> {
  const problems = [...nameProblems(options, NAMES), ...batchProblems(options)];
  if (problems.length > 0) throw new MailroomError('BAD_ARGUMENT', `explore: ${problems.join(' ')}`);
  const { faults = 1, stalls = 0, deviations = faults + stalls + 1 } = options;
  const scenario = handlerScenario(typeof handler === 'function' ? handler : () => handler, {
    ...options,
    budget: { faults, stalls },
  });
  if (options.seed !== undefined) {
    const { what, timeline } = await replaySchedule(scenario, options.seed);
    if (what !== undefined) throw broken({ scenario: scenario.name, what, seed: options.seed, timeline });
    return { schedules: 1, crashPoints: 0 };
  }
  const { schedules, crashPoints, violations } = await exploreScenario(scenario, {
    deviationsMax: deviations,
  });
  if (violations[0] !== undefined) throw broken(violations[0]);
  return { schedules, crashPoints: crashPoints.size };
}

function handlerScenario<W>(
  handler: (parts: ExploredParts, world: W) => Handler,
  options: ExploreOptions<W> & Pick<Scenario, 'budget'>,
): Scenario {
  const { workers = 2, budget, check, others = [] } = options;
  return {
    name: 'handler',
    budget,
    begin: async (scheduler) => {
      const beside = options.world?.() as W;
      const world = await consumerWorld(scheduler, {
        ...options,
        batchSize: 1 + others.length,
        handler: (parts) => handler(parts, beside),
        items: () => options.items ?? [],
      });
      for (let number = 1; number <= workers; number += 1) {
        void world.work(scheduler.actor(`worker ${number}`), 1);
      }
      return {
        ...world,
        state: (left) => `${world.state(left)} ${worldDigest(beside)}`,
        settle: () => void world.work(scheduler.actor('rest'), REST_RECEIVES),
        verdict: () => world.unrest() ?? checked(() => check(world.memory, beside)),
      };
    },
  };
}

/** The most events beside the first one: `queue.batchSize` is 10 by default. */
const OTHERS_MAX = 9;

/** @param options - absent in untyped code */
function batchProblems(options?: Pick<ExploreOptions<unknown>, 'others'>): string[] {
  const events = options?.others?.length ?? 0;
  if (events <= OTHERS_MAX) return [];
  return [`others has ${events} events; a batch has at most ${OTHERS_MAX} beside the first one.`];
}

/** The maximum number of receives until a queue settles. */
const REST_RECEIVES = 60;

function checked(check: () => void): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function broken({ what, seed, timeline }: Violation): MailroomError {
  return new MailroomError(
    'SCHEDULE_BROKEN',
    `${what}\n\n${timelineText(timeline)}\n\nTo run just this schedule again: explore(handler, { …, seed: '${seed}' })`,
  );
}
