import { type BridgeTarget, bridge } from '../../lambdas/runtime/bridge.ts';
import { createConsumer, leased } from '../../lambdas/runtime/index.ts';
import { createInboxProcessor, type InboxProcessor } from '../../lambdas/runtime/sources.ts';
import { consumerConfig, lambdaContext, memoryTable } from '../../testing/index.ts';
import { chunks } from '../alternatives/queue-delivery.ts';
import { argument } from '../child.ts';
import { OrderPlaced } from '../relay/measured-relay.ts';
import type { BrokerPlace, Outgoing } from './broker-link.ts';
import { linkTo } from './link.ts';
import { invocationsOf, newOrders, TOGETHER } from './orders.ts';

/** The task of a process: it uses the libraries alone, or Mailroom with its table in memory. */
export interface CourierTask {
  readonly with: 'plain' | 'mailroom';
}

/** The parent's message: carry events to or from a broker, or, without one, to nothing. */
export interface CourierTurn {
  readonly direction: 'out' | 'in';
  readonly place?: BrokerPlace;
  /** The events before the measured ones. */
  readonly warmUp: number;
  readonly events: number;
}

/** The result of a turn. */
export interface CourierResult {
  readonly ms: number;
  readonly cpuMs: number;
}

/** Deadline of a turn. */
const DEADLINE_MS = 300_000;

const task = argument<CourierTask>();

// The telemetry is the default one; the parent discards what it writes.
const config = consumerConfig({ service: 'orders', publishes: 'any', consumer: 'bench' });

/** A target that accepts everything at once. */
const nothing: BridgeTarget = {
  name: () => 'nothing',
  limits: { entries: 100, bytes: Number.POSITIVE_INFINITY },
  send: async (entries) => entries.map(() => ({ ok: true, place: {} })),
};

/** Counts events, and measures from the last of the warm-up to the last one. */
function stopwatch({ warmUp, events }: CourierTurn) {
  let count = 0;
  let startedAt = 0;
  let before = process.cpuUsage();
  let resolve: (carried: CourierResult) => void = () => {};
  const carried = new Promise<CourierResult>((resolved) => {
    resolve = resolved;
  });
  const tick = (more = 1) => {
    count += more;
    if (count === warmUp) {
      before = process.cpuUsage();
      startedAt = performance.now();
    }
    if (count !== warmUp + events) return;
    const { user, system } = process.cpuUsage(before);
    resolve({ ms: performance.now() - startedAt, cpuMs: (user + system) / 1_000 });
  };
  return { tick, carried, count: () => count };
}

type Stopwatch = ReturnType<typeof stopwatch>;

/** Sends events in tens, one ten after the other. */
async function sendAll(turn: CourierTurn, { tick }: Stopwatch): Promise<void> {
  const orders = await newOrders(turn.warmUp + turn.events);
  const link = turn.place && linkTo(turn.place);
  if (task.with === 'mailroom') {
    const { to, close } = link?.target() ?? { to: nothing, close: async () => {} };
    const handlers = bridge({ to, events: [OrderPlaced] });
    const consume = createConsumer({ config, table: memoryTable(), queue: NO_QUEUE, handlers });
    for (const invocation of invocationsOf(orders)) {
      const { batchItemFailures } = await consume(invocation, lambdaContext());
      if (batchItemFailures.length > 0) throw new Error('The bridge returned failed events');
      tick(invocation.Records.length);
    }
    await close();
    return;
  }
  if (link === undefined) throw new Error('A library alone needs a broker');
  const { send, close } = await link.sender();
  for (const messages of chunks(orders, TOGETHER)) {
    await send(messages);
    tick(messages.length);
  }
  await close();
}

const NO_QUEUE = { changeVisibility: async () => {} };

/** Consumes everything. */
async function consumeAll(
  { place, warmUp, events }: CourierTurn,
  { tick, carried }: Stopwatch,
): Promise<void> {
  const handler = leased(OrderPlaced, async () => tick());
  const inbox = createInboxProcessor({ config, table: memoryTable() });
  if (place === undefined) {
    for (const messages of chunks(await newOrders(warmUp + events), TOGETHER))
      await processAll(inbox, handler, messages);
    return;
  }
  const link = linkTo(place);
  const stop = task.with === 'plain' ? await link.consume(tick) : await link.loop(inbox, handler);
  await carried;
  await stop();
}

async function processAll(
  inbox: InboxProcessor,
  handler: Parameters<InboxProcessor['process']>[1],
  messages: readonly Outgoing[],
): Promise<void> {
  const deliver = ({ key, body }: Outgoing) =>
    inbox.process({ id: key, body, receives: 1, sentAt: Date.now() }, handler);
  const answers = await Promise.all(messages.map(deliver));
  if (answers.some(({ kind }) => kind !== 'done')) throw new Error('A message was not processed');
}

async function run(turn: CourierTurn): Promise<CourierResult> {
  const watch = stopwatch(turn);
  const late = setTimeout(() => {
    throw new Error(
      `Only ${watch.count()} events were carried within ${DEADLINE_MS / 1_000} s: ${JSON.stringify(turn)}`,
    );
  }, DEADLINE_MS);
  await (turn.direction === 'out' ? sendAll : consumeAll)(turn, watch);
  clearTimeout(late);
  const expected = turn.warmUp + turn.events;
  if (watch.count() !== expected) throw new Error(`${watch.count()} of ${expected} events were carried`);
  return watch.carried;
}

process.on('message', async (turn: CourierTurn) => process.send?.(await run(turn)));
process.once('disconnect', () => process.exit());
