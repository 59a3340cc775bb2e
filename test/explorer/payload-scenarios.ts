import { transactional } from '../../lambdas/runtime/consume/handler.ts';
import type { Payloads } from '../../lambdas/runtime/events/payloads.ts';
import { createConsumer } from '../../lambdas/runtime/sources/sqs/consumer.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { OUTBOX_PREFIX } from '../../lambdas/runtime/store/outbox-partition.ts';
import { type PayloadObjects, payloadsIn } from '../../lambdas/runtime/store/payload-objects.ts';
import type { Actor, Scheduler } from '../../testing/explorer/actor.ts';
import type { ExploredWorld, Scenario } from '../../testing/explorer/exploration.ts';
import { createPastItems } from '../../testing/explorer/past-items.ts';
import { scheduledTable } from '../../testing/explorer/ports.ts';
import { digest } from '../../testing/explorer/world-digest.ts';
import {
  eventBridgeMessage,
  lambdaContext,
  memoryQueue,
  memoryTable,
  memoryTelemetry,
} from '../../testing/index.ts';
import { consumerConfig, Unparsed } from '../support/runtime-rig.ts';
import type { Bounds } from './relay-scenarios.ts';

/** Changes the payloads that the code gets. */
export interface PayloadTamper {
  /** @param later - runs after the producer's commit */
  readonly payloads?: (
    real: Payloads,
    objects: ObjectsOfWorld,
    later: (() => Promise<unknown>)[],
  ) => Payloads;
}

/** The objects of a world, under its scheduler. */
interface ObjectsOfWorld {
  readonly now: ReadonlyMap<string, Uint8Array>;
  /** Makes the same payloads, which write nothing. */
  readonly dry: Payloads;
}

type Change = 'altered' | 'deleted';

const CONFIG = { bucket: 'payloads', aboveBytes: 1, aheadDays: 1, inline: [] };
const DATA = { n: 1 };
const TIMEOUT_MS = 60_000;
/** The longest that the queue takes to come to rest, in receives. */
const REST_RECEIVES = 40;

const SETTINGS: readonly { readonly name: string; readonly change?: Change }[] = [
  { name: 'a large payload, committed and received' },
  { name: 'a large payload that is altered', change: 'altered' },
  { name: 'a large payload that is deleted', change: 'deleted' },
];

/** Every scenario of a payload in S3. */
export function payloadScenarios({ budget, actors }: Bounds, tamper: PayloadTamper = {}): Scenario[] {
  return SETTINGS.map(({ name, change }) => ({
    name: `payload: ${name}`,
    budget,
    begin: async (scheduler) => begin(scheduler, change, tamper, actors),
  }));
}

function begin(
  scheduler: Scheduler,
  change: Change | undefined,
  tamper: PayloadTamper,
  actors: number,
): ExploredWorld {
  const clock = { now: () => scheduler.now(), sleep: async () => {} };
  const memory = memoryTable({ clock });
  const queue = memoryQueue({ clock, visibilityTimeoutMs: TIMEOUT_MS, maxReceiveCount: REST_RECEIVES });
  const past = createPastItems();
  const objects = new Map<string, Uint8Array>();
  const written = new Set<string>();
  const received: unknown[] = [];
  const sent = new Set<string>();
  let hasEnded = false;
  let changed = false;

  /** The payloads, and what their tamper does after a commit. */
  function payloadsOf(actor: Actor): { readonly payloads: Payloads; after(): Promise<void> } {
    const store = scheduledObjects(actor, objects, written);
    const later: (() => Promise<unknown>)[] = [];
    const real = payloadsIn(store, CONFIG);
    const dry = payloadsIn({ ...store, put: async () => {} }, CONFIG);
    return {
      payloads: tamper.payloads?.(real, { now: objects, dry }, later) ?? real,
      after: async () => {
        for (const work of later) await work();
      },
    };
  }

  const rows = () => memory.items().filter(({ PK }) => String(PK).startsWith(OUTBOX_PREFIX));
  const references = () => rows().map(({ envelope }) => JSON.parse(String(envelope)));

  async function produce(actor: Actor): Promise<void> {
    const { payloads, after } = payloadsOf(actor);
    await actor.invoke(TIMEOUT_MS, async () => {
      const table = scheduledTable(actor, memory, past);
      const outbox = createOutbox({
        config: consumerConfig,
        table,
        clock: actor.clock,
        random: actor.random,
        payloads,
      });
      await outbox.commit({ events: [Unparsed.create({ aggregateId: 'thing', data: DATA })] });
      await after();
    });
    hasEnded = true;
  }

  /** Publishes what is in the outbox, as the relay does. */
  function relay(): void {
    for (const { SK, source, type, envelope } of rows()) {
      if (sent.has(String(SK))) continue;
      sent.add(String(SK));
      const published = { id: 'explored', publishedAt: scheduler.now(), source: String(source) };
      queue.send(eventBridgeMessage({ ...published, detailType: String(type), detail: String(envelope) }));
    }
  }

  async function consume(actor: Actor, receives: number): Promise<void> {
    for (let count = 0; count < receives; count += 1) {
      relay();
      if (hasEnded && queue.messages().length === 0) return;
      const [message] = queue.messages();
      if (message === undefined) {
        await actor.clock.sleep(1_000);
        continue;
      }
      if (message.visibleAt > scheduler.now()) await actor.clock.sleep(message.visibleAt - scheduler.now());
      await actor.invoke(TIMEOUT_MS, async () => {
        const handle = createConsumer({
          config: consumerConfig,
          table: memory,
          queue,
          clock: actor.clock,
          random: actor.random,
          telemetry: memoryTelemetry(),
          payloads: payloadsOf(actor).payloads,
          handlers: [
            transactional(Unparsed, async ({ data }) => {
              received.push(data);
              return {};
            }),
          ],
        });
        await queue.deliver(handle, 1, lambdaContext({ clock, timeoutMs: TIMEOUT_MS }));
      });
    }
  }

  async function disturb(actor: Actor): Promise<void> {
    await actor.step(`the object is ${change}`, () => {
      changed = objects.size > 0;
      for (const key of objects.keys()) {
        if (change === 'deleted') objects.delete(key);
        else objects.set(key, Buffer.from(JSON.stringify({ n: 2 })));
      }
    });
  }

  void produce(scheduler.actor('producer'));
  for (let number = 1; number < actors; number += 1) void consume(scheduler.actor(`worker ${number}`), 2);
  if (change !== undefined) void disturb(scheduler.actor('owner of the bucket'));

  return {
    state: () =>
      digest([
        memory.items(),
        [...objects.keys()],
        String([...objects.values()]),
        queue.messages(),
        received,
        hasEnded,
      ]),
    deadlines: () => queue.messages().map(({ visibleAt }) => visibleAt),
    violation: () => {
      if (references().some(({ payload }) => !written.has(payload.key)))
        return 'A committed event has never had its object';
      if (received.some((data) => JSON.stringify(data) !== JSON.stringify(DATA)))
        return 'A handler received other bytes than were committed';
      return undefined;
    },
    settle: (again) => void consume(again.actor('rest'), REST_RECEIVES),
    verdict: () => {
      for (const { eventId } of references()) {
        const { status, reason } = memory.item(inboxKey(consumerConfig.consumer, eventId)) ?? {};
        if (status === 'PROCESSED') continue;
        if (changed && /^PAYLOAD_(CHANGED|MISSING)$/.test(String(reason))) continue;
        return `The message is ${String(status)} (${String(reason)}), and its object was ${changed ? 'changed' : 'there'}`;
      }
      return undefined;
    },
  };
}

/** The objects, each of whose calls goes through the scheduler. */
function scheduledObjects(
  actor: Actor,
  objects: Map<string, Uint8Array>,
  written: Set<string>,
): PayloadObjects {
  const failures = [
    { label: 'denied', error: () => Object.assign(new Error('denied'), { name: 'AccessDenied' }) },
  ];
  return {
    put: (key, content) =>
      actor.call({
        label: 'put the object',
        effect: true,
        failures,
        perform: async () => {
          objects.set(key, content);
          written.add(key);
        },
      }),
    get: (key) =>
      actor.call({
        label: 'get the object',
        effect: false,
        failures,
        perform: async () => {
          const content = objects.get(key);
          return content && { bytes: content.byteLength, content: async () => content };
        },
      }),
  };
}
