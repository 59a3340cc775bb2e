import type { Clock } from '../../lambdas/runtime/base/clock.ts';
import type { ProducerConfig } from '../../lambdas/runtime/base/config.ts';
import type { ConsumerConfig } from '../../lambdas/runtime/base/consumer-config.ts';
import type { EventDraft } from '../../lambdas/runtime/events/event.ts';
import { pendingRow } from '../../lambdas/runtime/outbox/pending-row.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import { eventIdInSortKey } from '../../lambdas/runtime/store/event-id.ts';
import { INBOX_PREFIX, inboxHistoryKey, inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import type { StoredOutboxRow } from '../../lambdas/runtime/store/stored-envelope.ts';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import { consumerConfig } from '../default-config.ts';
import { eventBridgeMessage } from '../memory-bus.ts';
import { memoryQueue } from '../memory-queue.ts';
import { type MemoryTable, memoryTable } from '../memory-table.ts';
import type { Actor, Scheduler, World } from './actor.ts';
import { type ConsumerParts, type ConsumerWorldOptions, tableNow, violate } from './consumer-parts.ts';
import { tableOf } from './consumer-table.ts';
import { ask, work } from './consumer-work.ts';
import { expireItems } from './expiry.ts';
import { type ExploredQueue, exploredQueue } from './explored-queue.ts';
import type { HandlerLog } from './observed-handler.ts';
import { createPastItems } from './past-items.ts';
import { digest } from './world-digest.ts';

/** A consumer, its queue and its table under a scheduler. */
export interface ConsumerWorld extends World {
  readonly memory: MemoryTable;
  readonly queue: ExploredQueue;
  readonly config: ConsumerConfig;
  readonly eventId: string;
  /** The ids of the event and of the others, in order. */
  readonly eventIds: readonly string[];
  readonly log: HandlerLog;
  /** The table from the actor's point of view. */
  tableOf(actor: Actor): Table;
  /** Receives and handles messages until the queue is empty. @param invocationsMax - the maximum number of invocations */
  work(actor: Actor, invocationsMax: number): Promise<void>;
  /** Sends a request to the consumer's function as the `mailroom` command does. @returns its answer, if it was received */
  ask(actor: Actor, request: unknown): Promise<unknown>;
  /** Makes every call of the table fail, from now on. @param ms - for how long */
  beginOutage(ms: number): void;
  /** Runs DynamoDB's TTL: deletes each item some time after its `expiresAt`, until no item has one. */
  expire(actor: Actor): Promise<void>;
  /** Returns a problem in the final state, given a message that its handler can process. */
  unrest(): string | undefined;
  /** Records a violation. */
  violate(what: string): void;
}

const DEFAULTS = consumerConfig({
  service: 'explored',
  publishes: 'any',
  shards: 1,
  consumer: 'worker',
  queueUrl: 'https://queue',
  visibilityTimeoutMs: 60_000,
  maxAttempts: 3,
});

/** Creates a consumer's world: an empty inbox, and the event's messages in the queue. */
export async function consumerWorld(
  scheduler: Scheduler,
  options: ConsumerWorldOptions,
): Promise<ConsumerWorld> {
  const parts = await setUp(scheduler, options);
  const { memory, queue, config, log, eventIds } = parts;
  const [eventId = ''] = eventIds;
  return {
    memory,
    queue,
    config,
    eventId,
    eventIds,
    log,
    tableOf: (actor) => tableOf(parts, actor),
    work: (actor, invocationsMax) => work(parts, actor, invocationsMax),
    ask: (actor, request) => ask(parts, actor, request),
    beginOutage: (ms) => {
      parts.tableBackAt = scheduler.now() + ms;
    },
    expire: (actor) => expireItems(parts, actor),
    violate: (what) => violate(parts, what),
    unrest: () => unrest(parts),
    state: ({ faults }) =>
      digest([
        tableNow(parts).digest,
        Object.keys(options.otherTables ?? {}).map((name) => memory.items(name)),
        queue.messages(),
        queue.deadLetters(),
        queue.sharedAtOnce(),
        [...log.happened],
        [...log.rejectedIds],
        parts.tableBackAt,
        faults > 0 ? parts.past.state() : 'none',
      ]),
    deadlines: () => deadlines(parts),
    violation: () =>
      parts.wrong ?? (tableNow(parts).pointersDiffer ? 'A REJECTED row and its pointer differ' : undefined),
  };
}

async function setUp(scheduler: Scheduler, options: ConsumerWorldOptions): Promise<ConsumerParts> {
  const clock = { now: () => scheduler.now(), sleep: async () => {} };
  const config = { ...DEFAULTS, ...options.config };
  const { visibilityTimeoutMs } = config;
  const { maxReceiveCount = 6, twice = false, copies = 1, others = [], bodies = [], ageMs = 0 } = options;
  const memory = memoryTable({ clock, otherTables: options.otherTables });
  const queue = exploredQueue(memoryQueue({ clock, visibilityTimeoutMs, maxReceiveCount }), twice);

  const retentions = [{ days: config.inboxRetentionDays, since: clock.now() - ageMs }];
  const history = { ...inboxHistoryKey(config.consumer), schema: SCHEMA, retentions, changedAt: clock.now() };
  if (!options.isNew) await memory.write({ Put: { Item: history } });
  const past = { ...clock, now: () => clock.now() - ageMs };
  const entries = await committedEvents({ config, table: memory, clock: past }, [options.event, ...others]);
  const eventIds = entries.flatMap(({ SK }) => eventIdInSortKey(SK) ?? []);
  for (const Item of options.items?.(eventIds[0] ?? '') ?? []) await memory.write({ Put: { Item } });
  const published = entries.flatMap((row) => pendingRow({ ...row })?.entry ?? []);
  for (const [index, { source, detailType, detail }] of published.entries()) {
    const body = eventBridgeMessage({ id: 'explored', publishedAt: clock.now(), source, detailType, detail });
    for (let copy = 0; copy < (index === 0 ? copies : 1); copy += 1) queue.send(body);
  }
  for (const body of bodies) queue.send(body);
  return {
    scheduler,
    options,
    config,
    memory,
    queue,
    past: createPastItems(),
    log: { rejectedIds: new Set(), happened: new Map(), running: new Map() },
    eventIds,
    outageEnds: clock.now() + (options.outageMs ?? 0),
    tableBackAt: 0,
    wrong: undefined,
    now: undefined,
  };
}

function messageRow({ memory, config }: ConsumerParts, eventId: string): Item | undefined {
  return memory.item(inboxKey(config.consumer, eventId));
}

function unrest(parts: ConsumerParts): string | undefined {
  const { queue, eventIds } = parts;
  if (queue.deadLetters().length > 0) {
    const causes = eventIds.flatMap((id) => messageRow(parts, id)?.lastError ?? []);
    return ['A message is in the dead-letter queue', ...causes].join(': ');
  }
  for (const id of eventIds) {
    const { status, expiresAt } = messageRow(parts, id) ?? { status: 'without a row' };
    // Only an operator discards, and a consumer what is stale.
    if (status !== 'PROCESSED' && status !== 'DISCARDED')
      return `The message is stuck: it is ${String(status)}`;
    if (expiresAt === undefined) return 'The row of a processed message never expires';
  }
  return queue.messages().length > 0 ? 'A message is left in the queue' : undefined;
}

/** The times at which a lease or an outage ends, or a message becomes visible again. */
function deadlines(parts: ConsumerParts): number[] {
  const leases = tableNow(parts)
    .items.filter(({ PK }) => String(PK).startsWith(INBOX_PREFIX))
    .flatMap(({ leaseUntil, endsBy }) => [leaseUntil, endsBy])
    .filter((time) => typeof time === 'number')
    .map((time) => time + 1);
  return [...leases, parts.tableBackAt, ...parts.queue.messages().map(({ visibleAt }) => visibleAt)];
}

/** The outbox rows of some events, each with its own id, the same in every schedule. */
async function committedEvents(
  deps: { readonly config: ProducerConfig; readonly table: Table; readonly clock: Clock },
  events: readonly EventDraft[],
): Promise<StoredOutboxRow[]> {
  let minted = 0xee;
  const outbox = createOutbox({ ...deps, random: (count) => Buffer.alloc(count, minted) });
  const rows: StoredOutboxRow[] = [];
  for (const event of events) {
    for (const { Put } of await outbox.entries([event])) rows.push(Put.Item);
    minted -= 1;
  }
  return rows;
}
