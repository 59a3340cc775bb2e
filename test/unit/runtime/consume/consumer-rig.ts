import { expect } from 'vitest';
import { type Handler, type LeasedContext, leased } from '../../../../lambdas/runtime/consume/handler.ts';
import type { Envelope } from '../../../../lambdas/runtime/events/event.ts';
import type { Payloads } from '../../../../lambdas/runtime/events/payloads.ts';
import { withExtras } from '../../../../lambdas/runtime/observe/telemetry-wrappers.ts';
import { createConsumer } from '../../../../lambdas/runtime/sources/sqs/consumer.ts';
import { mintEventId } from '../../../../lambdas/runtime/store/event-id.ts';
import type { InboxRow } from '../../../../lambdas/runtime/store/inbox-row.ts';
import { failedKey, inboxKey, rejectedKey } from '../../../../lambdas/runtime/store/keys.ts';
import type { StoredEffect } from '../../../../lambdas/runtime/store/stored-effect.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import { lambdaContext, type QueueHandler } from '../../../../testing/index.ts';
import { consumerConfig, rig, runThrough, ThingHappened } from '../../../support/runtime-rig.ts';

/** The parts of a consumer's rig. */
export type Parts = ReturnType<typeof rig> & { readonly payloads?: Payloads };

export const CONSUMER = consumerConfig.consumer;

/** A consumer on the rig, its queue, and one round of what Lambda does. */
export function consumer(
  parts: Parts,
  handlers: readonly Handler[],
  table = parts.table,
  change: Partial<typeof consumerConfig> = {},
) {
  const { queue, clock, payloads } = parts;
  const config = { ...consumerConfig, ...change };
  const telemetry = withExtras(parts.telemetry, ([extra]) => identified(extra));
  const handle = createConsumer({ config, table, queue, handlers, clock, telemetry, payloads });
  return {
    handle,
    /** Delivers what is visible to one invocation of the function. */
    deliver: (timeoutMs = 30_000) =>
      runThrough(clock, queue.deliver(handle, 10, lambdaContext({ clock, timeoutMs }))),
    /** Delivers until the queue is empty, or `rounds` are over. */
    async drain(rounds = 30): Promise<void> {
      for (let round = 0; round < rounds && queue.messages().length > 0; round += 1) {
        await runThrough(clock, queue.deliver(handle, 10, lambdaContext({ clock })));
        const next = Math.min(...queue.messages().map((message) => message.visibleAt));
        if (Number.isFinite(next)) await clock.advance(Math.max(1, next - clock.now()));
      }
    },
  };
}

/** The fields of a log line, which must name its message: by the event id, `mailroom logs` finds it. */
function identified(fields: unknown): object {
  const known = { consumer: undefined, eventId: undefined, messageId: undefined, ...(fields as object) };
  expect(known).toMatchObject({
    consumer: CONSUMER,
    eventId: expect.any(String),
    messageId: expect.any(String),
  });
  return known;
}

/** A process that can be killed. */
interface Mortal {
  kill(): Promise<never>;
}

/**
 * Lambda with functions that can die: every invocation is its own process. After a kill nothing that it does has an
 * effect, and the whole batch is shown again when its visibility timeout has passed.
 *
 * @param handlersOf - makes the handlers of one process, with what kills it
 * @param payloadsOf - makes its payloads @default those of `parts`
 */
export function crashable(
  parts: Parts,
  handlersOf: (process: Mortal) => readonly Handler[],
  change: Partial<typeof consumerConfig> = {},
  payloadsOf: (process: Mortal) => Payloads | undefined = () => parts.payloads,
) {
  const { queue, clock } = parts;
  const timeoutMs = 30_000;

  function invocation(): QueueHandler {
    let dead = false;
    const never = () => new Promise<never>(() => {});
    const living = <T extends object>(port: T): T =>
      new Proxy(port, {
        get: (target, name) => {
          const call: unknown = Reflect.get(target, name);
          if (typeof call !== 'function') return call;
          return (...args: unknown[]) => (dead ? never() : Reflect.apply(call, target, args));
        },
      });
    const process: Mortal = {
      kill: () => {
        dead = true;
        return never();
      },
    };
    const { handle } = consumer(
      { ...parts, queue: living(queue), payloads: payloadsOf(process) },
      handlersOf(process),
      living(parts.memory),
      change,
    );
    return (event, context) => {
      const stopped = clock.sleep(timeoutMs).then(() => {
        dead = true;
        throw new Error('the process is gone');
      });
      return Promise.race([handle(event, context), stopped]);
    };
  }

  /** One batch of what is visible. */
  const deliver = (batchSize = 10) =>
    runThrough(clock, queue.deliver(invocation(), batchSize, lambdaContext({ clock, timeoutMs })));

  return {
    deliver,
    /**
     * Several pollers at a time, until the queue is empty or the time is over.
     *
     * @param every - called each second, before the pollers look
     */
    async poll(pollers: number, forMs: number, every: () => void = () => {}): Promise<void> {
      let busy = 0;
      for (const end = clock.now() + forMs; clock.now() < end && queue.messages().length > 0; ) {
        every();
        const now = clock.now();
        if (queue.messages().some(({ visibleAt }) => visibleAt <= now)) {
          for (; busy < pollers; busy += 1) {
            const context = lambdaContext({ clock, timeoutMs });
            void queue.deliver(invocation(), 10, context).finally(() => {
              busy -= 1;
            });
          }
        }
        await clock.advance(1_000);
      }
    },
    /** Delivers until the queue is empty. @returns how many batches that took */
    async drain(roundsMax = 2_000, batchSize = 10, before: () => void = () => {}): Promise<number> {
      for (let round = 0; round < roundsMax; round += 1) {
        before();
        if (queue.messages().length === 0) return round;
        await deliver(batchSize);
        const next = Math.min(...queue.messages().map((message) => message.visibleAt));
        if (Number.isFinite(next)) await clock.advance(Math.max(1, next - clock.now()));
      }
      return roundsMax;
    },
  };
}

/** What a message says of one event. */
export function envelope(parts: Parts, change: Partial<Envelope> = {}): Envelope {
  const eventId = mintEventId(parts.clock.now(), 2);
  return {
    eventId,
    type: 'ThingHappened',
    version: 2,
    aggregateType: 'Thing',
    aggregateId: '1',
    occurredAt: parts.clock.now(),
    correlationId: 'chain',
    data: { n: 1 },
    ...change,
  };
}

/** The body of an SQS message as EventBridge sends it. */
export const body = (detail: { readonly type?: unknown }) => ({
  id: 'e',
  'detail-type': detail.type,
  source: 'things',
  detail,
});

/** Puts an event into the queue. */
export function send(parts: Parts, change: Partial<Envelope> = {}): Envelope {
  const sent = envelope(parts, change);
  parts.queue.send(body(sent));
  return sent;
}

export const inboxRow = (parts: Parts, event: Envelope) =>
  parts.memory.item(inboxKey(CONSUMER, event.eventId));
const pointer = (parts: Parts, event: Envelope) => parts.memory.item(rejectedKey(CONSUMER, event.eventId));
/** A row of the service, which must not be there yet. */
export const domainRow = {
  Put: { Item: { PK: 'THING#1', SK: 'THING', schema: 1 }, ConditionExpression: 'attribute_not_exists(PK)' },
};

/** An effect as it stands in the row of its message. */
function storedEffect(parts: Pick<Parts, 'memory'>, { eventId }: Sent, name = 'charge') {
  const row = parts.memory.item(inboxKey(CONSUMER, eventId)) as InboxRow | undefined;
  return row?.effects?.[name];
}

/**
 * Leaves an effect in the row of its message, which is FAILED without an attempt unless it has a row already.
 *
 * @param effect - in progress under the claim of another function, unless it says otherwise
 */
async function leaveEffect(
  { memory }: Pick<Parts, 'memory'>,
  { eventId }: Sent,
  effect: Partial<StoredEffect>,
  name = 'charge',
): Promise<void> {
  const key = inboxKey(CONSUMER, eventId);
  const row = memory.item(key) ?? { ...key, schema: 1, status: 'FAILED', fence: 'dead', attempts: 0 };
  const entry = { status: 'IN_PROGRESS', fence: 'dead', run: 1, endsBy: 0, startedAt: 0, ...effect };
  await memory.write({ Put: { Item: { ...row, effects: { ...(row.effects as object), [name]: entry } } } });
}

type Sent = Pick<Envelope, 'eventId'>;

type Handles = Handler | ((ctx: LeasedContext) => unknown);

/** A delivery: the table and the function's timeout; everything else changes the configuration. */
interface DeliveryOptions extends Partial<typeof consumerConfig> {
  readonly table?: Table;
  readonly timeoutMs?: number;
}

/**
 * A queue with one message, and the rows of this message.
 *
 * @param sent - changes of its event
 */
export function oneMessage(sent: Partial<Envelope> = {}, options: Parameters<typeof rig>[0] = {}) {
  const parts = rig(options);
  const { clock, memory, queue, telemetry } = parts;
  const event = send(parts, sent);
  const key = inboxKey(CONSUMER, event.eventId);
  const row = () => inboxRow(parts, event);
  const visibleAt = () => Math.min(...queue.messages().map((message) => message.visibleAt));
  const consumerOf = (handles: Handles, table = parts.table, change: Partial<typeof consumerConfig> = {}) => {
    const handler =
      typeof handles === 'function' ? leased(ThingHappened, async (_, ctx) => handles(ctx)) : handles;
    return consumer(parts, [handler], table, change);
  };
  return {
    ...parts,
    event,
    row,
    visibleAt,
    waitsMs: () => visibleAt() - clock.now(),
    hint: () => memory.item(failedKey(CONSUMER, event.eventId)),
    pointer: () => pointer(parts, event),
    effect: (name?: string) => storedEffect(parts, event, name),
    leaveEffect: (effect: Partial<StoredEffect>, name?: string) => leaveEffect(parts, event, effect, name),
    /** Overwrites attributes of its row, or writes one. */
    overwrite: (change: object) =>
      memory.write({ Put: { Item: { schema: 1, ...row(), ...change, ...key } } }),
    /** Lets another worker receive it, and SQS show it again. */
    async receivedBefore(): Promise<void> {
      queue.receive();
      await clock.advance(60_000);
    },
    /** Delivers it to one invocation of the function, as soon as it is visible. */
    async deliver(handles: Handles, { table, timeoutMs, ...change }: DeliveryOptions = {}) {
      const { deliver } = consumerOf(handles, table, change);
      if (visibleAt() > clock.now() && visibleAt() < Number.POSITIVE_INFINITY)
        await clock.advance(visibleAt() - clock.now());
      return deliver(timeoutMs);
    },
    /** Delivers until the queue is empty. */
    drain: (handles: Handles, { table, ...change }: DeliveryOptions = {}, rounds?: number) =>
      consumerOf(handles, table, change).drain(rounds),
    domainRow: () => memory.item({ PK: 'THING#1', SK: 'THING' }),
    logged: (level?: string) =>
      telemetry
        .lines()
        .filter((line) => level === undefined || line.level === level)
        .map(({ message }) => message),
  };
}

export const awsError = (name: string): Error => Object.assign(new Error('of AWS'), { name });
export const throttled = () => Promise.reject(awsError('ThrottlingException'));
export const unanswered = () => Promise.reject(awsError('TimeoutError'));

type Action = Parameters<Table['write']>[0] | Parameters<Table['transact']>[0];

/** A table that does something before each write and transaction that contains a text. */
export const beforeWrite = (table: Table, text: string, work: (action: Action) => unknown) =>
  around(table, text, async (action, call) => {
    await work(action);
    return call();
  });

/** A table that does something after each write and transaction that contains a text. */
export const afterWrite = (table: Table, text: string, work: (action: Action) => unknown) =>
  around(table, text, async (action, call) => {
    const result = await call();
    await work(action);
    return result;
  });

function around(
  table: Table,
  text: string,
  work: (action: Action, call: () => Promise<unknown>) => Promise<unknown>,
): Table {
  const wrapped = (name: 'write' | 'transact') =>
    ((action: never, ...more: never[]) => {
      const call = () => (table[name] as (...args: never[]) => Promise<unknown>)(action, ...more);
      return JSON.stringify(action).includes(text) ? work(action, call) : call();
    }) as never;
  return { ...table, write: wrapped('write'), transact: wrapped('transact') };
}
