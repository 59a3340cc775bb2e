import type { ConsumerConfig } from '../../lambdas/runtime/base/consumer-config.ts';
import type { Handler } from '../../lambdas/runtime/consume/handler.ts';
import type { EventDraft } from '../../lambdas/runtime/events/event.ts';
import type { ConsumerDeps, ConsumerHandler } from '../../lambdas/runtime/sources/sqs/consumer.ts';
import type { Queue } from '../../lambdas/runtime/sources/sqs/queue.ts';
import { inboxKey, rejectedKey } from '../../lambdas/runtime/store/keys.ts';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import type { KeyNames } from '../memory-store.ts';
import type { MemoryTable } from '../memory-table.ts';
import type { Actor, Scheduler } from './actor.ts';
import type { ExploredQueue } from './explored-queue.ts';
import type { HandlerLog } from './observed-handler.ts';
import type { PastItems } from './past-items.ts';
import { isHint } from './ports.ts';
import { digest } from './world-digest.ts';

/** Dependencies available to a handler under exploration. */
export interface ExploredParts {
  /** The Mailroom table: each call may fail, lose its response, or take effect late. */
  readonly table: Table;
}

/** Options of a consumer's world. */
export interface ConsumerWorldOptions {
  readonly handler: (
    parts: ExploredParts,
    process: Pick<Actor, 'die' | 'clock' | 'call'>,
  ) => Handler | readonly Handler[];
  readonly event: EventDraft;
  /** Other events, each with one message. @default none */
  readonly others?: readonly EventDraft[] | undefined;
  /** The bodies of other messages, such as those of external events. @default none */
  readonly bodies?: readonly unknown[] | undefined;
  /** The age of the events at the start, in milliseconds. @default 0 */
  readonly ageMs?: number | undefined;
  /** The inbox has never started. @default it has been started when the events were written */
  readonly isNew?: boolean | undefined;
  /** The maximum number of messages per batch. @default 1 */
  readonly batchSize?: number | undefined;
  /** The time from the start during which the table throttles all transactions, in milliseconds. @default no throttling */
  readonly outageMs?: number | undefined;
  /** Items that exist at the start. @default none */
  readonly items?: ((eventId: string) => readonly Item[]) | undefined;
  /** The fence of a row that was set REJECTED by hand: it may have no pointer. @default none */
  readonly unlistedFence?: string | undefined;
  readonly otherTables?: Readonly<Record<string, KeyNames>> | undefined;
  readonly config?: Partial<ConsumerConfig> | undefined;
  /** The number of messages that carry the event. @default 1 */
  readonly copies?: number | undefined;
  /** Delivers each message to two workers at once: one message id, two receipts. @default false */
  readonly twice?: boolean | undefined;
  /** The number of receives after which SQS moves a message to the dead-letter queue. @default 6 */
  readonly maxReceiveCount?: number | undefined;
  /** Lets an operator take the message from a worker that holds it. @default false */
  readonly mayForce?: boolean | undefined;
  /** The version of the stored shape that an actor reads and writes. @default this one's */
  readonly schemaOf?: ((actor: Actor) => number) | undefined;
  /** Replaces the table, to show the effect of removing a rule. @default the table itself */
  readonly tamperTable?: ((table: Table, actor: Actor) => Table) | undefined;
  /** Replaces the queue. @default the queue itself */
  readonly tamperQueue?: ((queue: Queue) => Queue) | undefined;
  /** Makes the consumer's function. @default `createConsumer` */
  readonly makeConsumer?: ((deps: ConsumerDeps) => ConsumerHandler) | undefined;
  /** Replaces the consumer's function. @default the function itself */
  readonly tamperConsumer?: ((consume: ConsumerHandler, actor: Actor) => ConsumerHandler) | undefined;
  /** Replaces a handler. @default the handler itself */
  readonly tamperHandler?: ((handler: Handler, actor: Actor) => Handler) | undefined;
}

/** The parts of a consumer's world that its functions share. */
export interface ConsumerParts {
  readonly scheduler: Scheduler;
  readonly options: ConsumerWorldOptions;
  readonly config: ConsumerConfig;
  readonly memory: MemoryTable;
  readonly queue: ExploredQueue;
  readonly past: PastItems;
  readonly log: HandlerLog;
  readonly eventIds: readonly string[];
  /** The end of the throttling of transactions, in epoch milliseconds. */
  readonly outageEnds: number;
  /** The end of the outage of the whole table, in epoch milliseconds; 0 before there was one. */
  tableBackAt: number;
  /** The first violation, if any. */
  wrong: string | undefined;
  /** See {@link tableNow}; `undefined` after a change. */
  now: TableNow | undefined;
}

/** The Mailroom table at one time. */
interface TableNow {
  readonly items: readonly Item[];
  /** Equal for equal items, without hints. */
  readonly digest: string;
  /** A REJECTED row has no pointer, or a pointer no such row. */
  readonly pointersDiffer: boolean;
}

/** Records a violation; the first one is the violation of the schedule. */
export function violate(parts: ConsumerParts, what: string): void {
  parts.wrong ??= what;
}

/** The Mailroom table now. Schedules look at it after each step, and few steps change it. */
export function tableNow(parts: ConsumerParts): TableNow {
  parts.now ??= readTable(parts);
  return parts.now;
}

function readTable({ memory, config, eventIds, options }: ConsumerParts): TableNow {
  const items = memory.items();
  const differs = (eventId: string) => {
    const { PK, SK } = rejectedKey(config.consumer, eventId);
    const pointer = items.some((item) => item.PK === PK && item.SK === SK);
    const { status, fence } = memory.item(inboxKey(config.consumer, eventId)) ?? {};
    const mayBeUnlisted = fence !== undefined && fence === options.unlistedFence;
    return pointer ? status !== 'REJECTED' : status === 'REJECTED' && !mayBeUnlisted;
  };
  return {
    items,
    digest: digest(items.filter((item) => !isHint(item))),
    pointersDiffer: eventIds.some(differs),
  };
}
