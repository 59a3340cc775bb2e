import type { Clock } from '../../lambdas/runtime/base/clock.ts';
import type { Handler } from '../../lambdas/runtime/consume/handler.ts';
import type { EventDraft } from '../../lambdas/runtime/events/event.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { OUTBOX_PREFIX } from '../../lambdas/runtime/store/outbox-partition.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import type { Budget } from '../../testing/explorer/actor.ts';
import type { ExploredParts } from '../../testing/explorer/consumer-parts.ts';
import { type ConsumerWorld, consumerWorld } from '../../testing/explorer/consumer-world.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import type { MemoryTable } from '../../testing/memory-table.ts';

/** One of two messages that meet, and its handler. */
interface Side<W> {
  readonly event: EventDraft;
  readonly handler: (parts: ExploredParts, world: W, clock: Clock) => Handler;
}

/** Two messages that meet on the same rows. */
export interface Meeting<W> {
  readonly name: string;
  readonly sides: readonly [Side<W>, Side<W>];
  /** Makes what the handlers need beside the table, for each schedule. */
  readonly world: () => W;
  /** What `world` remembers, as JSON takes it: a part of the state. */
  readonly remembered: (world: W) => unknown;
  /** Items that are in the table before. @default none */
  readonly items?: readonly Item[];
  /** Looks at the table when all is over. @returns what is wrong */
  readonly check: (table: MemoryTable, world: W) => string | undefined;
}

/** The longest that a queue takes to come to rest, in receives. */
const REST_RECEIVES = 60;

/**
 * Two different events on one table, each with a queue and a worker: every order of their calls, with what may go wrong.
 * Both events get the same id, so each message has an inbox of its own name.
 */
export function meeting<W>(options: Meeting<W>, budget: Budget): Scenario {
  return {
    name: options.name,
    budget,
    begin: async (scheduler) => {
      const world = options.world();
      const [left, right] = options.sides;
      const first = await consumerWorld(scheduler, {
        event: left.event,
        handler: (parts, { clock }) => left.handler(parts, world, clock),
        items: () => options.items ?? [],
        config: { consumer: 'first' },
      });
      const second = await consumerWorld(scheduler, {
        event: right.event,
        handler: (parts, { clock }) => right.handler(parts, world, clock),
        config: { consumer: 'second' },
        tamperTable: (_, actor) => first.tableOf(actor),
      });
      const both = [first, second];
      for (const [i, side] of both.entries()) void side.work(scheduler.actor(`worker ${i + 1}`), 1);
      return {
        state: (left) =>
          [...both.map((side) => side.state(left)), JSON.stringify(options.remembered(world))].join(' '),
        deadlines: () => both.flatMap((side) => side.deadlines()),
        violation: () => first.violation() ?? second.violation(),
        settle: (again) => {
          for (const [i, side] of both.entries()) void side.work(again.actor(`rest ${i + 1}`), REST_RECEIVES);
        },
        verdict: () => first.unrest() ?? unrest(second, first.memory) ?? options.check(first.memory, world),
      };
    },
  };
}

/** What {@link ConsumerWorld.unrest} says of the message whose row is in the other's table. */
function unrest({ queue, config, eventId }: ConsumerWorld, table: MemoryTable): string | undefined {
  if (queue.deadLetters().length > 0) return 'A healthy message is in the dead-letter queue';
  const { status } = table.item(inboxKey(config.consumer, eventId)) ?? { status: 'without a row' };
  if (status !== 'PROCESSED') return `The second message is stuck: it is ${String(status)}`;
  return queue.messages().length > 0 ? 'A message is left in the queue' : undefined;
}

/** The types of the events that were written, in alphabetical order. */
export function writtenEvents(table: MemoryTable): string[] {
  return table
    .items()
    .filter(({ PK }) => String(PK).startsWith(OUTBOX_PREFIX))
    .map(({ type }) => String(type))
    .toSorted();
}
