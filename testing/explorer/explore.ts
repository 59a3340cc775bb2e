import type { Handler } from '../../lambdas/runtime/consume/handler.ts';
import { MailroomError } from '../../lambdas/runtime/errors.ts';
import type { EventDraft } from '../../lambdas/runtime/event.ts';
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

/** How a handler is explored. */
export interface ExploreOptions<W> {
  /** The event that the handler is given. */
  readonly event: EventDraft;
  /** Looks at the table when all is over, and throws what is wrong: that a write was made twice, or not at all. */
  readonly check: (table: MemoryTable, world: W) => void;
  /**
   * Makes what the handler needs beside its table, such as the fake of a provider, anew for each schedule.
   *
   * Schedules that come to the same state are walked on only once, so keep the world's state where it can be compared: in
   * fields, arrays, Maps, Sets and dates, nested as you like. State in closures and private fields (`#balance`) is not
   * seen, unless a `toJSON` method returns it. What never repeats, such as a random value or a time, belongs in no world: no
   * two states would be the same.
   *
   * @default nothing
   */
  readonly world?: (() => W) | undefined;
  /** Items that are in the Mailroom table before. @default none */
  readonly items?: readonly Item[] | undefined;
  /** Tables of the service's own: the names of their key attributes, by table name. @default none */
  readonly otherTables?: Readonly<Record<string, KeyNames>> | undefined;
  /** How many workers have the message at the same time. @default 2 */
  readonly workers?: number | undefined;
  /** How many messages carry the event. @default 1: the second worker meets it when it is delivered again */
  readonly copies?: number | undefined;
  /** Crashes, failed calls, lost answers, and stale answers to eventually consistent reads in one schedule. @default 1 */
  readonly faults?: number | undefined;
  /** How often time passes while a call is under way, so that leases run out. @default 0 */
  readonly stalls?: number | undefined;
  /** How often a schedule may leave the ordinary way; bounds what several faults would make endless. @default any number of times */
  readonly deviations?: number | undefined;
  /** Runs the one schedule that a failure named. @default all schedules */
  readonly seed?: string | undefined;
}

/** What an exploration of a handler walked. */
export interface ExploreReport {
  /** How many schedules were run. */
  readonly schedules: number;
  /** The different places at which a worker crashed. */
  readonly crashPoints: number;
}

/**
 * Puts a consumer's handler through every schedule within its bounds: two workers on one message, in every order of
 * their calls; a crash before and after each call, also of each `ctx.once` effect; calls that fail, whose answers are
 * lost, or that take effect late; reads without `consistent: true` that are stale; leases that run out. After each schedule the system is let come to rest, and has to
 * be right: the message PROCESSED, no letter in the dead-letter queue, no effect run again once its result is stored,
 * or by two workers at once, or under another name in a later attempt, and whatever `check` says.
 *
 * The handler must be the same each time: no time, chance or state of its own between schedules. What it reads and
 * writes goes through the table that it is handed, or through `ctx`.
 *
 * @param handler - a handler, or a function that makes one with the table that it reads, and with `world`
 * @throws `SCHEDULE_BROKEN` with the schedule as a timeline, and the seed that runs it again
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
  const scenario = handlerScenario(typeof handler === 'function' ? handler : () => handler, options);
  if (options.seed !== undefined) {
    const { what, timeline } = await replaySchedule(scenario, options.seed);
    if (what !== undefined) throw broken({ scenario: scenario.name, what, seed: options.seed, timeline });
    return { schedules: 1, crashPoints: 0 };
  }
  const { schedules, crashPoints, violations } = await exploreScenario(scenario, {
    deviationsMax: options.deviations,
  });
  if (violations[0] !== undefined) throw broken(violations[0]);
  return { schedules, crashPoints: crashPoints.size };
}

function handlerScenario<W>(
  handler: (parts: ExploredParts, world: W) => Handler,
  options: ExploreOptions<W>,
): Scenario {
  const { workers = 2, faults = 1, stalls = 0, check } = options;
  return {
    name: 'handler',
    budget: { faults, stalls },
    begin: async (scheduler) => {
      const beside = options.world?.() as W;
      const world = await consumerWorld(scheduler, {
        ...options,
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

/** The longest that a queue takes to come to rest, in receives. */
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
