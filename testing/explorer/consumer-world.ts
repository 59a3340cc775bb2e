import type { SQSRecord } from 'aws-lambda';
import type { ConsumerConfig } from '../../lambdas/runtime/config.ts';
import { createConsumer } from '../../lambdas/runtime/consume/consumer.ts';
import type { Handler } from '../../lambdas/runtime/consume/handler.ts';
import type { Queue } from '../../lambdas/runtime/consume/queue.ts';
import type { EventDraft } from '../../lambdas/runtime/event.ts';
import { eventIdInSortKey } from '../../lambdas/runtime/store/keys.ts';
import {
  INBOX_PREFIX,
  type InboxRow,
  inboxHistoryKey,
  inboxKey,
  rejectedKey,
  SCHEMA,
} from '../../lambdas/runtime/store/rows.ts';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import { consumerConfig } from '../default-config.ts';
import { lambdaContext } from '../lambda-context.ts';
import { eventBridgeMessage } from '../memory-bus.ts';
import { memoryQueue } from '../memory-queue.ts';
import type { KeyNames } from '../memory-store.ts';
import { type MemoryTable, memoryTable } from '../memory-table.ts';
import type { Actor, Scheduler, World } from './actor.ts';
import { named } from './call-outcomes.ts';
import { committedEvents } from './committed-events.ts';
import { digest } from './digest.ts';
import { type ExploredQueue, exploredQueue } from './explored-queue.ts';
import { inboxViolation } from './inbox-rules.ts';
import { type HandlerLog, observed } from './observed-handler.ts';
import { createPastItems } from './past-items.ts';
import { isHint, scheduledQueue, scheduledTable } from './ports.ts';
import { type Change, watchedTable } from './watched-table.ts';
import { watchedTelemetry } from './watched-telemetry.ts';

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

/** A consumer, its queue and its table under a scheduler. */
export interface ConsumerWorld extends World {
  readonly memory: MemoryTable;
  readonly queue: ExploredQueue;
  readonly config: ConsumerConfig;
  readonly eventId: string;
  /** The event's id, and those of the others in their order. */
  readonly eventIds: readonly string[];
  readonly log: HandlerLog;
  /** The table as an actor sees it. */
  tableOf(actor: Actor): Table;
  /** Receives and handles messages until the queue is empty. @param invocationsMax - how many at most */
  work(actor: Actor, invocationsMax: number): Promise<void>;
  /** What is not as it should be when all is over, and the message one that its handler can process. */
  unrest(): string | undefined;
  /** Says that something happened that may never happen. */
  violate(what: string): void;
}

/** How long the function of a consumer may run, milliseconds. */
const FUNCTION_TIMEOUT_MS = 45_000;

const DEFAULTS = consumerConfig({
  service: 'explored',
  shards: 1,
  consumer: 'worker',
  queueUrl: 'https://queue',
  visibilityTimeoutMs: 60_000,
  maxAttempts: 3,
});

/** Sets up a consumer's world: an empty inbox, and the event's messages in the queue. */
export async function consumerWorld(
  scheduler: Scheduler,
  options: ConsumerWorldOptions,
): Promise<ConsumerWorld> {
  const clock = { now: () => scheduler.now(), sleep: async () => {} };
  const config = { ...DEFAULTS, ...options.config };
  const memory = memoryTable({ clock, otherTables: options.otherTables });
  const { visibilityTimeoutMs } = config;
  const { maxReceiveCount = 6, twice = false } = options;
  const queue = exploredQueue(memoryQueue({ clock, visibilityTimeoutMs, maxReceiveCount }), twice);
  const past = createPastItems();
  const log: HandlerLog = { rejectedIds: new Set(), happened: new Map(), running: new Map() };
  let wrong: string | undefined;
  let items: Item[] | undefined; // until the table changes
  const itemsNow = () => {
    items ??= memory.items();
    return items;
  };
  const violate = (what: string) => {
    wrong ??= what;
  };

  const historyKey = inboxHistoryKey(config.consumer);
  const retentions = [{ days: config.inboxRetentionDays, since: clock.now() }];
  const history = { ...historyKey, schema: SCHEMA, retentions, changedAt: clock.now() };
  await memory.write({ Put: { Item: history } });
  const events = [options.event, ...(options.others ?? [])];
  const entries = await committedEvents({ config, table: memory, clock }, events);
  const eventIds = entries.map(({ SK }) => eventIdInSortKey(SK) ?? '');
  const [eventId = ''] = eventIds;
  const outageEnds = clock.now() + (options.outageMs ?? 0);
  for (const Item of options.items?.(eventId) ?? []) await memory.write({ Put: { Item } });
  for (const [index, { source, type, envelope }] of entries.entries()) {
    const body = eventBridgeMessage({
      id: 'explored',
      publishedAt: clock.now(),
      source,
      detailType: type,
      detail: envelope,
    });
    for (let copy = 0; copy < (index === 0 ? (options.copies ?? 1) : 1); copy += 1) queue.send(body);
  }

  function tableOf(actor: Actor): Table {
    const watched = watchedTable(memory, (change) => {
      items = undefined;
      if (!isHint(change.key)) past.changed(change);
      for (const id of (change.after as Partial<InboxRow> | undefined)?.rejectedIds ?? [])
        log.rejectedIds.add(id);
      const broken = inboxViolation(change, actor.index, scheduler.now(), options.mayForce ?? false);
      if (broken !== undefined) violate(broken);
      if (isUnsettledEffect(change)) violate('TTL may delete an effect before its message is PROCESSED');
    });
    // The inbox's history is only read: when, makes no difference.
    const table = scheduledTable(actor, reachable(watched), past, (pk) => pk !== historyKey.PK);
    return options.tamperTable?.(table, actor) ?? table;
  }

  /** The table and its outage, which is not a fault of a schedule and does not end before its time. */
  function reachable(table: MemoryTable): MemoryTable {
    return {
      ...table,
      transact: async (actions, token) => {
        if (scheduler.now() < outageEnds) throw named('ThrottlingException', 'Rate exceeded');
        await table.transact(actions, token);
      },
    };
  }

  const messageOf = (id: string) => memory.item(inboxKey(config.consumer, id));

  function isUnsettledEffect({ key, after }: Change): boolean {
    return (
      key.SK !== 'MESSAGE' &&
      after?.status === 'COMPLETED' &&
      'expiresAt' in after &&
      memory.item({ PK: key.PK, SK: 'MESSAGE' })?.status !== 'PROCESSED'
    );
  }

  function pointersDiffer(): boolean {
    return eventIds.some((id) => {
      const { PK, SK } = rejectedKey(config.consumer, id);
      const pointer = itemsNow().some((item) => item.PK === PK && item.SK === SK);
      return pointer !== (messageOf(id)?.status === 'REJECTED');
    });
  }

  /** What is not as it should be with one event when all is over. */
  function unrestOf(id: string): string | undefined {
    const { status, expiresAt } = messageOf(id) ?? { status: 'without a row' };
    // Only an operator discards.
    if (status !== 'PROCESSED' && status !== 'DISCARDED')
      return `The message is stuck: it is ${String(status)}`;
    return expiresAt === undefined ? 'The row of a processed message never expires' : undefined;
  }

  async function work(actor: Actor, invocationsMax: number): Promise<void> {
    for (let invocations = 0; invocations < invocationsMax; invocations += 1) {
      const records = await nextMessages(actor);
      if (records.length === 0) return;
      const end = await actor.invoke(FUNCTION_TIMEOUT_MS, () => invocation(actor, records));
      if (end.kind === 'threw') violate(`The consumer threw: ${String(end.error)}`);
      if (end.kind !== 'returned') continue;
      const failed = new Set(end.value.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
      for (const { messageId, receiptHandle } of records) {
        if (failed.has(messageId)) continue;
        await actor.step('delete the message', () => queue.delete(receiptHandle), {
          local: !queue.isSharedAtOnce(receiptHandle),
          lost: 'the message is not deleted',
        });
      }
    }
  }

  async function nextMessages(actor: Actor): Promise<SQSRecord[]> {
    for (;;) {
      const records = await actor.step('receive', () => queue.receive(options.batchSize ?? 1));
      const shown = queue.messages().map(({ visibleAt }) => visibleAt);
      if (records.length > 0 || shown.length === 0) return records;
      await actor.clock.sleep(Math.max(1, Math.min(...shown) - clock.now()));
    }
  }

  function invocation(actor: Actor, records: SQSRecord[]) {
    const table = tableOf(actor);
    const scheduled = scheduledQueue(actor, queue);
    const handler = observed(options.handler({ table }, actor), {
      actor,
      memory,
      consumer: config.consumer,
      messageIds: new Map(records.map(({ body, messageId }) => [eventIdOf(body), messageId])),
      log,
      violate,
    });
    const consume = createConsumer({
      config,
      table,
      queue: options.tamperQueue?.(scheduled) ?? scheduled,
      handlers: [handler],
      clock: actor.clock,
      random: actor.random,
      telemetry: watchedTelemetry(violate),
    });
    return consume({ Records: records }, lambdaContext({ clock, timeoutMs: FUNCTION_TIMEOUT_MS }));
  }

  return {
    memory,
    queue,
    config,
    eventId,
    eventIds,
    log,
    tableOf,
    work,
    violate,
    unrest: () => {
      if (queue.deadLetters().length > 0) return 'A healthy message is in the dead-letter queue';
      const unrest = eventIds.map(unrestOf).find((what) => what !== undefined);
      if (unrest !== undefined) return unrest;
      return queue.messages().length > 0 ? 'A message is left in the queue' : undefined;
    },
    state: ({ faults }) =>
      digest([
        itemsNow().filter((item) => !isHint(item)),
        Object.keys(options.otherTables ?? {}).map((name) => memory.items(name)),
        queue.messages(),
        queue.deadLetters(),
        queue.sharedAtOnce(),
        [...log.happened],
        [...log.rejectedIds],
        faults > 0 ? past.state() : 'none',
      ]),
    deadlines: () => {
      const leases = itemsNow()
        .filter(({ PK }) => String(PK).startsWith(INBOX_PREFIX))
        .flatMap(({ leaseUntil, endsBy }) => [leaseUntil, endsBy])
        .filter((time) => typeof time === 'number')
        .map((time) => time + 1);
      return [...leases, ...queue.messages().map(({ visibleAt }) => visibleAt)];
    },
    violation: () => wrong ?? (pointersDiffer() ? 'A REJECTED row and its pointer differ' : undefined),
  };
}

/** The event that a message of this world carries. */
function eventIdOf(body: string): string {
  return (JSON.parse(body) as { readonly detail: { readonly eventId: string } }).detail.eventId;
}
