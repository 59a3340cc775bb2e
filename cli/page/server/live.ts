import type { Clock } from '../../../lambdas/runtime/base/clock.ts';
import type { QueueDepth } from '../../../lambdas/runtime/operations/queues.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { readAcks } from '../../reports/findings/acknowledgements.ts';
import { createBusReader } from '../../reports/status/bus-status.ts';
import { createKeptReadings } from '../../reports/status/kept-readings.ts';
import { createStatusReader } from '../../reports/status/status-reader.ts';
import { statusJson } from '../../reports/status/status-text.ts';
import { createEventFeed, type EventFeed } from './event-feed.ts';
import { createPollLoop, createUnreadParts, type UnreadParts } from './polling.ts';
import type { Flow, LiveMessage, QueueNow } from './protocol.ts';

/** The live state of a Mailroom: one poller for all tabs. */
export interface Live {
  /**
   * Sends the latest flow, every run and the state of the demo at once, and then each message. The poller runs while there is a
   * subscriber.
   *
   * @param send - a subscriber whose `send` throws is dropped
   * @returns a function that ends the subscription; it may be called more than once
   */
  subscribe(send: (message: LiveMessage) => void): () => void;
  /** Reads everything at once, e.g. after a change: nothing that was read before is shown again. */
  refresh(): void;
  /** Sends a message to all subscribers, and to later ones while it is the latest of its run or of the demo. */
  announce(message: LiveMessage): void;
}

/** The intervals of the readings, milliseconds. The status keeps what changes less often: see `createStatusReader`. */
const EVERY_MS = { events: 2_000, queues: 5_000, status: 10_000, acks: 60_000 } as const;

/** After a longer pause the poller starts over: what it read before is out of date. */
const PAUSE_MAX_MS = 60_000;

/**
 * Creates the live state of a deployment's Mailroom. It reads nothing before the first subscription.
 *
 * @example
 * ```ts
 * const live = createLive(deployment);
 * const end = live.subscribe((message) => stream.writeSSE({ data: JSON.stringify(message) }));
 * ```
 */
export function createLive(deployment: Deployment): Live {
  const { clock } = deployment;
  const unread = createUnreadParts(clock);
  const reader = createStatusReader(deployment);
  const readNeighbors = createBusReader(deployment);
  const kept = createKeptReadings(clock);
  let state = emptyState(deployment);
  let lastReadAt = Number.NEGATIVE_INFINITY;

  const flow = (): Flow => {
    const at = clock.now();
    const { feed, ...read } = state;
    const { status, neighbors } = read;
    const queues = Object.fromEntries(read.queues);
    return { at, status, neighbors, ...feed.show(at), queues, unread: unread.list() };
  };
  const subscribers = createSubscribers(() => ({ kind: 'flow', flow: flow() }));

  async function readQueues(): Promise<void> {
    const { queues, trends } = state;
    const readings = deployment.directory.consumers.map(({ name, queue }) =>
      unread.read(`queue of ${name}`, EVERY_MS.queues, async () => {
        // It is unknown until it has been read.
        const depth = await reader.depth(queue).catch((error: unknown) => {
          queues.set(name, null);
          throw error;
        });
        queues.set(name, depth === undefined ? null : (trends.get(name)?.(depth, clock.now()) ?? null));
      }),
    );
    await Promise.all(readings);
  }

  function readStatus(): Promise<void> {
    const reading = state;
    return unread.read('status', EVERY_MS.status, async () => {
      const report = await reader.read();
      const acks = await kept.keep('acks', EVERY_MS.acks, () => readAcks(deployment.stored, report.at));
      reading.status = statusJson(report, { ...deployment, acks });
      reading.neighbors = await readNeighbors();
    });
  }

  const reads = {
    events: () => readEvents(state.feed, unread, clock),
    queues: readQueues,
    status: readStatus,
  };
  const loops = (['events', 'queues', 'status'] as const).map((name) =>
    createPollLoop(clock, EVERY_MS[name], async () => {
      await reads[name]();
      lastReadAt = clock.now();
      subscribers.send();
      // The last one may have been dropped.
      if (subscribers.count() === 0) stop();
    }),
  );

  function stop(): void {
    for (const loop of loops) loop.stop();
  }

  return {
    subscribe: (send) => {
      if (subscribers.count() === 0) {
        if (clock.now() - lastReadAt > PAUSE_MAX_MS) state = emptyState(deployment);
        for (const loop of loops) loop.start();
      }
      const end = subscribers.add(send);
      return () => {
        end();
        if (subscribers.count() === 0) stop();
      };
    },
    refresh: () => {
      reader.forget();
      kept.forget();
      unread.retry();
      for (const loop of loops) loop.wake();
    },
    announce: subscribers.announce,
  };
}

/** Reads the new events, then the states of the newest; earlier ones follow as long as there are too few. */
async function readEvents(feed: EventFeed, unread: UnreadParts, clock: Clock): Promise<void> {
  const everyMs = EVERY_MS.events;
  const readStates = () => unread.read('states of messages', everyMs, () => feed.readStates(clock.now()));
  await unread.read('new events', everyMs, () => feed.readNew(clock.now()));
  await readStates();
  await unread.read('earlier events', everyMs, async () => {
    if (await feed.readEarlier()) await readStates();
  });
}

/** The results of the readings. */
interface LiveState {
  readonly feed: EventFeed;
  readonly queues: Map<string, QueueNow | null>;
  readonly trends: ReadonlyMap<string, ReturnType<typeof createQueueTrend>>;
  status: Flow['status'];
  neighbors: Flow['neighbors'];
}

function emptyState({ directory, table, stored, clock }: Deployment): LiveState {
  return {
    feed: createEventFeed({ directory, table, stored, clock }),
    queues: new Map(),
    trends: new Map(directory.consumers.map(({ name }) => [name, createQueueTrend()])),
    status: null,
    neighbors: undefined,
  };
}

type Subscriber = (message: LiveMessage) => void;

/** The most runs that a new subscriber receives. */
const RUNS_MAX = 100;

/** The tabs that are open, and the messages that a new one needs. @param flow - makes the message with the latest flow */
function createSubscribers(flow: () => LiveMessage) {
  const sends = new Set<Subscriber>();
  const kept = new Map<string, LiveMessage>();
  const deliver = (send: Subscriber, message: LiveMessage): void => {
    try {
      send(message);
    } catch {
      // The tab was closed; its stream reports that next.
      sends.delete(send);
    }
  };
  const toAll = (message: LiveMessage): void => {
    for (const send of [...sends]) deliver(send, message);
  };
  return {
    count: () => sends.size,
    /** Adds a subscriber and sends it the flow, every run and the state of the demo. @returns a function that removes it */
    add: (send: Subscriber): (() => void) => {
      // Two subscriptions of one function are two.
      const own: Subscriber = (message) => send(message);
      sends.add(own);
      for (const message of [flow(), ...kept.values()]) deliver(own, message);
      return () => void sends.delete(own);
    },
    /** Sends the flow to all. */
    send: (): void => {
      if (sends.size > 0) toAll(flow());
    },
    /** Sends a message to all, and keeps it for new subscribers. */
    announce: (message: LiveMessage): void => {
      if (message.kind !== 'flow') {
        const name = message.kind === 'run' ? `run ${message.run.id}` : message.kind;
        kept.set(name, message);
        const runs = [...kept.keys()].filter((key) => key !== 'demo');
        for (const old of runs.slice(0, -RUNS_MAX)) kept.delete(old);
      }
      toAll(message);
    },
  };
}

/** A depth is compared with that of this time ago, milliseconds. */
const TREND_OF_MS = 60_000;

/**
 * Creates an empty trend of a queue over the last minute, which adds the direction in which the queue moves to each reading. The
 * messages that wait and those in flight are compared together: a message that fails moves between the two, and leaves the queue only
 * when it is processed or dead.
 */
function createQueueTrend(): (depth: QueueDepth, now: number) => QueueNow {
  let history: { readonly at: number; readonly messages: number }[] = [];
  return ({ waiting, inFlight }, now) => {
    const messages = waiting + inFlight;
    const first = history.findLastIndex(({ at }) => at <= now - TREND_OF_MS);
    history = [...history.slice(Math.max(0, first)), { at: now, messages }];
    const before = history[0]?.messages ?? messages;
    const trend = messages < before ? 'falling' : messages > before ? 'rising' : 'level';
    return { queued: waiting, inFlight, trend };
  };
}
