import type { ConsumerConfig } from '../../lambdas/runtime/config.ts';
import type { Handler } from '../../lambdas/runtime/consume/handler.ts';
import type { Queue } from '../../lambdas/runtime/consume/queue.ts';
import type { EventDraft } from '../../lambdas/runtime/event.ts';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import type { KeyNames } from '../memory-store.ts';
import type { MemoryTable } from '../memory-table.ts';
import type { Actor, Scheduler } from './actor.ts';
import type { ExploredQueue } from './explored-queue.ts';
import type { HandlerLog } from './observed-handler.ts';
import type { PastItems } from './past-items.ts';

/** What a handler under exploration may use. */
export interface ExploredParts {
  /** The Mailroom table: each call is one that may fail, get lost, or come late. */
  readonly table: Table;
}

/** How a consumer's world is set up. */
export interface ConsumerWorldOptions {
  readonly handler: (parts: ExploredParts, process: Pick<Actor, 'die'>) => Handler;
  readonly event: EventDraft;
  /** Other events, each with one message. @default none */
  readonly others?: readonly EventDraft[] | undefined;
  /** The most messages of one batch. @default 1 */
  readonly batchSize?: number | undefined;
  /** For how long from the start the table throttles all transactions, milliseconds. @default not at all */
  readonly outageMs?: number | undefined;
  /** Items that are there before. @default none */
  readonly items?: ((eventId: string) => readonly Item[]) | undefined;
  readonly otherTables?: Readonly<Record<string, KeyNames>> | undefined;
  readonly config?: Partial<ConsumerConfig> | undefined;
  /** How many messages carry the event. @default 1 */
  readonly copies?: number | undefined;
  /** Whether each message is delivered to two workers at once: the same message id, and a receipt for each. @default false */
  readonly twice?: boolean | undefined;
  /** After how many receives SQS moves a message to the dead-letter queue. @default 6 */
  readonly maxReceiveCount?: number | undefined;
  /** Whether an operator may take the message from a worker that holds it. @default false */
  readonly mayForce?: boolean | undefined;
  /** Takes the place of the table, to show what happens without one of the rules. @default the table itself */
  readonly tamperTable?: ((table: Table, actor: Actor) => Table) | undefined;
  /** Takes the place of the queue. @default the queue itself */
  readonly tamperQueue?: ((queue: Queue) => Queue) | undefined;
}

/** The parts of a consumer's world, which its functions share. */
export interface ConsumerParts {
  readonly scheduler: Scheduler;
  readonly options: ConsumerWorldOptions;
  readonly config: ConsumerConfig;
  readonly memory: MemoryTable;
  readonly queue: ExploredQueue;
  readonly past: PastItems;
  readonly log: HandlerLog;
  readonly eventIds: readonly string[];
  /** When the table stops throttling transactions, epoch milliseconds. */
  readonly outageEnds: number;
  /** The first thing that happened and may never happen. */
  wrong: string | undefined;
  /** What the table holds, until it changes. */
  items: readonly Item[] | undefined;
}

/** Records something that may never happen; the first of them is the violation of the schedule. */
export function violate(parts: ConsumerParts, what: string): void {
  parts.wrong ??= what;
}

/** The items of the Mailroom table. */
export function itemsNow(parts: ConsumerParts): readonly Item[] {
  parts.items ??= parts.memory.items();
  return parts.items;
}
