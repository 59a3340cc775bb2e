import type { DynamoDBRecord } from 'aws-lambda';
import { CLOCK_SKEW_MS } from '../../lambdas/runtime/base/clock.ts';
import type { RelayConfig } from '../../lambdas/runtime/base/config.ts';
import { isMailroomError } from '../../lambdas/runtime/base/errors.ts';
import { DAY_MS, MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import type { Bus } from '../../lambdas/runtime/bus/event-bus.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import { repairChangedRow } from '../../lambdas/runtime/operations/audit/changed-row-repair.ts';
import type { OutboxEntry } from '../../lambdas/runtime/outbox/outbox-entry.ts';
import { createRelayStream } from '../../lambdas/runtime/relay/relay-stream.ts';
import { createSweepPass } from '../../lambdas/runtime/relay/relay-sweep.ts';
import { END_MARGIN_MS } from '../../lambdas/runtime/relay/sweep-tally.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import { requeueDead } from '../../lambdas/runtime/store/dynamo/outbox-operator.ts';
import {
  type AtOncePublisher,
  createAtOncePublisher,
} from '../../lambdas/runtime/store/dynamo/publish-at-once.ts';
import { eventIdShard, eventIdTime, minuteOf, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { deadKey, SWEEP_STATE_KEY, unsettledKey } from '../../lambdas/runtime/store/keys.ts';
import { OUTBOX_PREFIX, outboxPartition } from '../../lambdas/runtime/store/outbox-partition.ts';
import type { OutboxRow } from '../../lambdas/runtime/store/outbox-row.ts';
import { asRow, SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import type { StoredOutboxRow } from '../../lambdas/runtime/store/stored-envelope.ts';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import type { Actor, Scheduler } from '../../testing/explorer/actor.ts';
import { watchedTable } from '../../testing/explorer/consumer-table.ts';
import type { ExploredWorld } from '../../testing/explorer/exploration.ts';
import { createPastItems } from '../../testing/explorer/past-items.ts';
import { scheduledBus, scheduledTable } from '../../testing/explorer/ports.ts';
import { digest } from '../../testing/explorer/world-digest.ts';
import {
  type MemoryBus,
  type MemoryTable,
  memoryBus,
  memoryTable,
  memoryTelemetry,
} from '../../testing/index.ts';
import { consumerConfig, relayConfig, ThingHappened } from '../support/runtime-rig.ts';
import { DIRECTORY } from './operator-desk.ts';
import { outboxRules, type Role } from './outbox-rules.ts';

/** How long the relay's functions may run, milliseconds. */
const FUNCTION_TIMEOUT_MS = 120_000;

/** How often the sweep comes, at most, before the system has to be at rest. */
const REST_PASSES = 6;

/** The turn of a producer that publishes at once, milliseconds: pauses without a stall do not use it up. */
const TURN_MS = 2_000;

/** How far ahead of its call a producer reschedules an event, milliseconds. */
const MOVED_BY_MS = 20_000;

/** What a producer writes together with its event. */
const ORDER = { PK: 'ORDER#1', SK: 'ORDER' };

/** An event that is in the outbox when a schedule begins. */
interface SeededEvent {
  /** The age of its id, milliseconds: how long ago it was minted, by its producer's clock. */
  readonly ageMs: number;
  /** How long ago it was written, milliseconds. @default as its id says */
  readonly writtenAgoMs?: number;
  readonly status?: 'PENDING' | 'DEAD';
  /** When it is due, if it is scheduled, milliseconds from the start. @default it is an ordinary event */
  readonly dueInMs?: number;
  /** @default the rig's service */
  readonly source?: string;
  /** The time for which a publisher that died still holds it, milliseconds. @default the rest of its stream lease */
  readonly heldForMs?: number;
}

/** How the world of a relay is set up. */
export interface RelayWorldOptions {
  readonly events: readonly SeededEvent[];
  readonly config?: Partial<RelayConfig>;
  /** Codes with which the bus may refuse or fail an entry. @default a throttle, and an unknown one */
  readonly entryCodes?: readonly string[];
  /** Whether the bus may refuse an event for what it is, so that it may end DEAD. @default false */
  readonly mayDie?: boolean;
  /** Whether the events' minutes are known to be unsettled. @default false */
  readonly unsettled?: boolean;
  /** The first event's row was changed by hand, and an operator repairs it, at the latest while the system settles. @default false */
  readonly isChanged?: boolean;
  /** The number of shards of the events' producer, which may be higher than the relay's. @default 1, as the relay's */
  readonly producerShards?: number;
  /**
   * How long a sweep may work, milliseconds; it reads one row a page then, so that it stops at a row once that time has passed.
   *
   * @default longer than a pass takes
   */
  readonly passMs?: number;
  /** Take the place of the ports, to show what happens without one of the rules. */
  readonly tamper?: Tamper;
}

/** What stands between the code and its ports. */
export interface Tamper {
  readonly table?: (table: Table, actor: Actor) => Table;
  readonly bus?: (bus: Bus, table: Table) => Bus;
  readonly records?: (records: readonly DynamoDBRecord[]) => readonly DynamoDBRecord[];
  /** Changes a row that is in the table from the beginning. */
  readonly seeded?: (row: Item) => Item;
  /** Changes what a producer believes that it has written, before it publishes at once. */
  readonly written?: (row: StoredOutboxRow) => StoredOutboxRow;
  /** Replaces settings of the relay. */
  readonly config?: Partial<RelayConfig>;
}

/** A relay with its table and its bus under a scheduler. */
export interface RelayWorld extends ExploredWorld {
  readonly memory: MemoryTable;
  readonly bus: MemoryBus;
  /** The stream's mapping: hands the records to the relay, again when they failed. */
  stream(actor: Actor, deliveriesMax: number, how?: { readonly onlyRecord?: number }): Promise<void>;
  /** The schedule's rule: one pass of the sweep. */
  sweep(actor: Actor): Promise<void>;
  /** A producer that places one order and its event, and tries once more when it does not know what happened. */
  produce(actor: Actor, how?: { readonly atOnce: boolean; readonly dueInMs?: number }): Promise<void>;
  /** The stream's mapping, which comes at any time after the commit. */
  streamAfterCommit(actor: Actor, deliveriesMax: number): Promise<void>;
  /** The producer of the first event, which cancels it: alone, or in the transaction of an order. */
  cancel(actor: Actor, how?: { readonly withOrder: boolean }): Promise<void>;
  /** The producer of the first event, which reschedules it, and tries once more when it does not know what happened. */
  reschedule(actor: Actor): Promise<void>;
  /** The producer of the first event, which commits its entry again after a week, in which TTL has deleted what has expired. */
  commitAgain(actor: Actor): Promise<void>;
  /** An operator that requeues the first event. */
  requeue(actor: Actor): Promise<void>;
  /** An operator who makes the first event due after its row was changed by hand. */
  makeDue(actor: Actor): Promise<void>;
  /** A minute passes, which a repaired event waits for. */
  aMinute(actor: Actor): Promise<void>;
}

/** Sets up the world of a relay. */
export async function relayWorld(scheduler: Scheduler, options: RelayWorldOptions): Promise<RelayWorld> {
  const { tamper = {}, producerShards = 1 } = options;
  const producerConfig = { ...consumerConfig, shards: producerShards };
  const settings: RelayConfig = { ...relayConfig, shards: 1, ...options.config };
  const config: RelayConfig = { ...settings, ...tamper.config };
  const isPaged = options.passMs !== undefined;
  const isDeclared = (source: string) => settings.sources?.includes(source) ?? true;
  const start = scheduler.now();
  let setUpAt: number | undefined = start - 2 * 1024 * MINUTE_MS;
  const clock = { now: () => setUpAt ?? scheduler.now(), sleep: async () => {} };
  const memory = memoryTable({ clock });
  const bus = memoryBus({ clock });
  const past = createPastItems();
  const rules = outboxRules();
  let wrong: string | undefined;
  let items: Item[] | undefined; // until the table changes
  const itemsNow = () => {
    items ??= memory.items();
    return items;
  };
  const violate = (what: string | undefined) => {
    wrong ??= what;
  };

  const eventIds: string[] = [];
  const entries: OutboxEntry[] = [];
  for (const event of options.events) await seed(event);
  const sweptTo = start - MINUTE_MS;
  await memory.write({ Put: { Item: { ...SWEEP_STATE_KEY, schema: SCHEMA, sweptTo, shards: 1 } } });
  setUpAt = undefined;
  const busy = new Set(eventIds.map((id) => outboxKeyOf(id).PK));
  const shared = (pk: string) => busy.has(pk) || !/^(OUTBOX|DEAD)#/.test(pk);

  async function seed(event: SeededEvent) {
    const { ageMs, writtenAgoMs = ageMs, status = 'PENDING', source = ThingHappened.source, dueInMs } = event;
    const number = eventIds.length + 1;
    setUpAt = start - writtenAgoMs;
    const outbox = createOutbox({
      config: producerConfig,
      table: memory,
      clock: { now: () => start - ageMs, sleep: async () => {} },
      random: (count) => Buffer.alloc(count, number),
    });
    const [entry] = await outbox.entries([
      defineEvent({ ...ThingHappened, source }).create({
        aggregateId: `thing-${number}`,
        data: { n: number },
        ...(dueInMs !== undefined && { deliverAt: start + dueInMs }),
      }),
    ]);
    if (entry === undefined) throw new Error('No outbox entry was made');
    const leaseUntil = event.heldForMs === undefined ? entry.Put.Item.leaseUntil : start + event.heldForMs;
    const row: Item = { ...entry.Put.Item, status, leaseUntil };
    const eventId = entry.Put.Item.SK.slice('EVENT#'.length);
    eventIds.push(eventId);
    entries.push(entry);
    await memory.write({ Put: { Item: tamper.seeded?.(row) ?? row } });
    rules.changed({ key: entry.Put.Item, before: undefined, after: row }, 'producer', 'operator', start);
    if (status === 'DEAD')
      await memory.write({ Put: { Item: { ...deadKey(eventIdShard(eventId), eventId), schema: SCHEMA } } });
    if (options.unsettled)
      await memory.write({
        Put: {
          Item: {
            ...unsettledKey(eventIdShard(eventId), minuteOf(eventIdTime(eventId))),
            schema: SCHEMA,
            token: 'seeded',
          },
        },
      });
  }

  function tableOf(actor: Actor, role: Role): Table {
    const watched = watchedTable(memory, (change) => {
      items = undefined;
      past.changed(change);
      if (change.key.PK.startsWith(OUTBOX_PREFIX)) committed();
      violate(rules.changed(change, actor.name, role, scheduler.now()));
    });
    const paged: MemoryTable = {
      ...watched,
      query: (query) =>
        watched.query(isPaged && query.pk.startsWith(OUTBOX_PREFIX) ? { ...query, limit: 1 } : query),
    };
    const table = scheduledTable(actor, paged, past, shared);
    return tamper.table?.(table, actor) ?? table;
  }

  function busOf(actor: Actor, role: Role, table: Table): Bus {
    const scheduled = scheduledBus(actor, bus, options.entryCodes);
    const checked: Bus = {
      put: (entries, timeoutMs) => {
        for (const { detail, source } of entries) {
          const { eventId } = JSON.parse(detail) as { eventId: string };
          violate(
            isDeclared(source) ? undefined : `Event ${eventId} is published, but its source is not declared`,
          );
          const item = memory.item(outboxKeyOf(eventId));
          if (actor.clock.now() < Number(item?.dueAt ?? 0))
            violate(`Event ${eventId} is published before it is due`);
          violate(
            rules.publishes(eventId, item && asRow<OutboxRow>(item), actor.name, role, scheduler.now()),
          );
        }
        return scheduled.put(entries, timeoutMs);
      },
    };
    return tamper.bus?.(checked, table) ?? checked;
  }

  function parts(actor: Actor, role: Role) {
    const table = tableOf(actor, role);
    return {
      config,
      table,
      bus: busOf(actor, role, table),
      clock: actor.clock,
      random: actor.random,
      telemetry: memoryTelemetry(),
    };
  }

  async function stream(
    actor: Actor,
    deliveriesMax: number,
    { onlyRecord }: { onlyRecord?: number } = {},
  ): Promise<void> {
    let records = memory.stream().filter(({ eventName, dynamodb }) => {
      return eventName === 'INSERT' && dynamodb?.Keys?.PK?.S?.startsWith(OUTBOX_PREFIX);
    });
    if (onlyRecord !== undefined) records = records.slice(onlyRecord, onlyRecord + 1);
    records = [...(tamper.records?.(records) ?? records)];
    for (let deliveries = 0; deliveries < deliveriesMax && records.length > 0; deliveries += 1) {
      const end = await actor.invoke(FUNCTION_TIMEOUT_MS, () =>
        createRelayStream(parts(actor, 'stream'))({ Records: records }),
      );
      if (end.kind === 'threw') violate(`The stream's handler threw: ${String(end.error)}`);
      if (end.kind !== 'returned') continue;
      const failed = new Set(end.value.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
      const first = records.findIndex(({ dynamodb }) => failed.has(String(dynamodb?.SequenceNumber)));
      records = first === -1 ? [] : records.slice(first);
    }
  }

  async function sweep(actor: Actor): Promise<void> {
    const endsBy =
      actor.clock.now() + (options.passMs ?? FUNCTION_TIMEOUT_MS - END_MARGIN_MS) + END_MARGIN_MS;
    // A pass that throws is an invocation that failed: the next one reads what it did not.
    await actor.invoke(FUNCTION_TIMEOUT_MS, () => createSweepPass(parts(actor, 'sweep'))(endsBy));
  }

  function tampered(publisher: AtOncePublisher): AtOncePublisher {
    const { written = (row: StoredOutboxRow) => row } = tamper;
    return {
      ...publisher,
      publish: (entries, parts) =>
        publisher.publish(
          entries.map(({ Put }) => ({ Put: { ...Put, Item: written(Put.Item) } }) as OutboxEntry),
          parts,
        ),
    };
  }

  let cancelledWithOrder = 0;
  let eventsOfOrder = 1;
  let committed = () => {};
  const commits = new Promise<void>((resolve) => {
    committed = resolve;
  });

  async function streamAfterCommit(actor: Actor, deliveriesMax: number): Promise<void> {
    await commits;
    await actor.step('read the stream', () => {});
    await stream(actor, deliveriesMax);
  }

  async function produce(
    actor: Actor,
    { atOnce = false, dueInMs }: { atOnce?: boolean; dueInMs?: number } = {},
  ): Promise<void> {
    const table = tableOf(actor, atOnce ? 'producer' : 'operator');
    const { clock, random } = actor;
    const publisher = {
      config: { busName: 'bus', timeoutMs: TURN_MS, publishedRetentionDays: 7 },
      bus: busOf(actor, 'producer', table),
    };
    const publishAtOnce = atOnce ? tampered(createAtOncePublisher(publisher)) : undefined;
    const config = producerConfig;
    const outbox = createOutbox({ config, table, clock, random, publishAtOnce });
    const deliverAt = dueInMs === undefined ? undefined : start + dueInMs;
    if (deliverAt !== undefined) {
      eventsOfOrder = 2;
      busy.add(outboxPartition(minuteOf(deliverAt), 0));
    }
    const commit = () =>
      outbox.commit({
        writes: [{ Put: { Item: ORDER, ConditionExpression: 'attribute_not_exists(PK)' } }],
        events: [
          ThingHappened.create({ aggregateId: 'thing-1', data: { n: 1 } }),
          ...(deliverAt === undefined
            ? []
            : [ThingHappened.create({ aggregateId: 'thing-2', data: { n: 2 }, deliverAt })]),
        ],
      });
    busy.add(outboxPartition(minuteOf(clock.now()), 0));
    await actor.invoke(FUNCTION_TIMEOUT_MS, async () => {
      try {
        await commit();
      } catch (error) {
        if (isMailroomError(error, 'TRANSACTION_CANCELLED')) return;
        await commit().catch(() => {}); // refused where the first did happen
      }
    });
  }

  async function cancel(actor: Actor, { withOrder = false } = {}): Promise<void> {
    const { clock, random } = actor;
    const config = producerConfig;
    const outbox = createOutbox({ config, table: tableOf(actor, 'producer'), clock, random });
    const [eventId = ''] = eventIds;
    if (withOrder) eventsOfOrder = 0;
    await actor.invoke(FUNCTION_TIMEOUT_MS, async () => {
      const isCancelled = withOrder
        ? await outbox.commit({ writes: [{ Put: { Item: ORDER } }, outbox.cancellation(eventId)] }).then(
            () => true,
            () => false, // refused, or unknown
          )
        : (await outbox.cancel(eventId)) === 'cancelled';
      if (isCancelled && withOrder) cancelledWithOrder += 1;
      if (cancelledWithOrder > 1) violate('An event was cancelled in two transactions');
      if (isCancelled && memory.item(outboxKeyOf(eventId))?.status !== 'CANCELLED')
        violate('A cancelled event is not CANCELLED');
    });
  }

  let reschedules = false;
  async function reschedule(actor: Actor): Promise<void> {
    reschedules = true;
    const { clock, random } = actor;
    const config = producerConfig;
    const outbox = createOutbox({ config, table: tableOf(actor, 'producer'), clock, random });
    const [eventId = ''] = eventIds;
    const attempt = async () => {
      const deliverAt = clock.now() + MOVED_BY_MS;
      busy.add(outboxPartition(minuteOf(deliverAt), 0));
      const moved = ThingHappened.create({ aggregateId: 'thing-1', data: { n: 1 }, deliverAt });
      const result = await outbox.reschedule(eventId, moved);
      if (result.status !== 'rescheduled') return;
      if (memory.item(outboxKeyOf(result.event.eventId)) === undefined)
        violate('A rescheduled event is not in the outbox');
    };
    await actor.invoke(FUNCTION_TIMEOUT_MS, () => attempt().catch(attempt));
  }

  const expired = new Set<string>();
  async function commitAgain(actor: Actor): Promise<void> {
    const { clock, random } = actor;
    const config = producerConfig;
    const outbox = createOutbox({ config, table: tableOf(actor, 'producer'), clock, random });
    await clock.sleep(7 * DAY_MS + MINUTE_MS);
    await actor.step('deletes what has expired', () => {
      const stored = eventIds.map((id) => ({
        id,
        key: outboxKeyOf(id),
        before: memory.item(outboxKeyOf(id)),
      }));
      memory.expire();
      items = undefined;
      for (const { id, key, before } of stored) {
        if (memory.item(key) !== undefined) continue;
        expired.add(id);
        past.changed({ key, before, after: undefined });
      }
    });
    await actor.invoke(FUNCTION_TIMEOUT_MS, () =>
      outbox.commit({ writes: entries.slice(0, 1) }).then(
        () => violate('An event was committed twice'),
        () => {}, // refused, or unknown
      ),
    );
  }

  async function requeue(actor: Actor): Promise<void> {
    const { clock, random } = actor;
    const table = tableOf(actor, 'operator');
    await actor.invoke(FUNCTION_TIMEOUT_MS, () => requeueDead({ table, clock, random }, eventIds[0] ?? ''));
  }

  async function makeDue(actor: Actor): Promise<void> {
    const { clock, random } = actor;
    const deps = { table: tableOf(actor, 'operator'), clock, random, directory: DIRECTORY };
    const changed = { eventId: eventIds[0] ?? '', consumer: null, kind: 'held' } as const;
    await actor.invoke(FUNCTION_TIMEOUT_MS, () => repairChangedRow(deps, changed));
  }

  const rows = () =>
    itemsNow().filter(({ PK }) => String(PK).startsWith(OUTBOX_PREFIX)) as unknown as OutboxRow[];
  const published = () =>
    bus.published().map(({ detail }) => (JSON.parse(detail) as { eventId: string }).eventId);
  const unsettled = () => itemsNow().some(({ PK }) => String(PK).startsWith('SWEEP#'));

  async function rest(actor: Actor): Promise<void> {
    for (let passes = 0; passes < REST_PASSES; passes += 1) {
      const until = scheduler.now() + REST_PASSES * MINUTE_MS;
      const isOpen = (row: OutboxRow) => row.status === 'PENDING' && Number(row.dueAt ?? 0) < until;
      if (!unsettled() && !rows().some(isOpen)) return;
      if (options.isChanged) await makeDue(actor);
      await actor.clock.sleep(MINUTE_MS);
      await sweep(actor);
    }
  }

  function pointersDiffer(): boolean {
    const dead = rows().filter(({ status }) => status === 'DEAD').length;
    return itemsNow().filter(({ PK }) => String(PK).startsWith('DEAD#')).length !== dead;
  }

  return {
    memory,
    bus,
    stream,
    streamAfterCommit,
    sweep,
    produce,
    cancel,
    reschedule,
    commitAgain,
    requeue,
    makeDue,
    aMinute: (actor) => actor.clock.sleep(MINUTE_MS + CLOCK_SKEW_MS + 1),
    state: ({ faults }) =>
      digest([itemsNow(), published().sort(), rules.state(), faults > 0 ? past.state() : 'none']),
    deadlines: () => [
      ...rows().map(({ leaseUntil }) => leaseUntil + CLOCK_SKEW_MS + 1),
      // When a sweep that starts now would read another minute.
      Math.ceil((scheduler.now() + 1) / MINUTE_MS) * MINUTE_MS + 1,
    ],
    violation: () => wrong ?? (pointersDiffer() ? 'DEAD rows and their pointers differ' : undefined),
    settle: () => void rest(scheduler.actor('rest')),
    verdict: (spent) => {
      const ids = published();
      for (const row of rows()) {
        const id = row.SK.slice('EVENT#'.length);
        const times = ids.filter((other) => other === id).length;
        if (!isDeclared(row.source)) {
          if (times > 0 || !isAsBorn(row))
            return `Event ${id} of an undeclared source was touched: ${row.status}`;
          continue;
        }
        if (row.status === 'CANCELLED') {
          if (times > 0) return `Event ${id} was published although it was cancelled`;
          continue;
        }
        if (row.status === 'PENDING' && Number(row.dueAt ?? 0) > scheduler.now()) continue;
        if (row.status === 'PENDING') return `Event ${id} is stuck: PENDING, and no sweep comes to it`;
        if (row.status === 'DEAD' && !options.mayDie) return `Event ${id} is DEAD, although it is a good one`;
        if (row.status === 'PUBLISHED' && row.expiresAt === undefined)
          return `Event ${id} is PUBLISHED and never expires`;
        if (row.status === 'PUBLISHED' && times === 0)
          return `Event ${id} is lost: PUBLISHED, but the bus never took it`;
        if (times > 1 && spent.faults === 0 && spent.stalls === 0)
          return `Event ${id} was published ${times} times, without a fault`;
      }
      const others = rows().length + expired.size - eventIds.length;
      if (others < 0) return 'An event is lost: its row is gone';
      const ordered = memory.item(ORDER) !== undefined;
      const isCancelled = eventIds
        .slice(0, 1)
        .some((id) => memory.item(outboxKeyOf(id))?.status === 'CANCELLED');
      if (ordered && eventsOfOrder === 0 && !isCancelled) return 'An order and its cancellation have parted';
      if (reschedules && others !== (isCancelled ? 1 : 0))
        return `A cancelled event has ${others} in its place`;
      if (!reschedules && others !== (ordered ? eventsOfOrder : 0))
        return 'An order and its event have parted';
      if (rows().some(({ source }) => !isDeclared(source)))
        return unsettled() ? undefined : 'The minute of an event with an undeclared source is forgotten';
      return unsettled() ? 'A minute stays unsettled permanently' : undefined;
    },
  };
}

/** True if a row has not changed since it was written. */
function isAsBorn({ status, attempts, leaseUntil, SK }: OutboxRow): boolean {
  const bornLeaseUntil = eventIdTime(SK.slice('EVENT#'.length)) + consumerConfig.bornLeaseMs;
  return status === 'PENDING' && attempts === 0 && leaseUntil === bornLeaseUntil;
}
