import { createHash } from 'node:crypto';
import { type Clock, withDeadline } from '../base/clock.ts';

/** The part of a message of `amqplib` that {@link consumeRabbit} uses. */
export interface RabbitMessage {
  readonly content: Uint8Array;
  readonly fields: { readonly redelivered: boolean };
  readonly properties: {
    readonly messageId?: string | undefined;
    readonly type?: string | undefined;
    readonly headers?: Readonly<Record<string, unknown>> | undefined;
    readonly timestamp?: number | undefined;
  };
}

/** The part of a confirm channel of `amqplib` by which retries wait in a queue. */
export interface RabbitRetryChannel {
  assertQueue(
    queue: string,
    options: { readonly durable: true; readonly arguments: Readonly<Record<string, string>> },
  ): Promise<unknown>;
  sendToQueue(queue: string, content: Buffer, options: object, confirmed: (error: unknown) => void): boolean;
  on(event: 'return', listener: (message: RabbitMessage) => void): unknown;
}

type Headers = Readonly<Record<string, unknown>>;

/** The properties of a message that identify it. */
interface RabbitIdentity {
  readonly messageId?: string | null | undefined;
  readonly headers?: Headers | null | undefined;
}

/** The times that a message was a dead letter, and was received, before it was last put into a retry queue. */
const DEATHS = 'mailroom-deaths';
const RECEIVES = 'mailroom-receives';

/** The copy in a retry queue that RabbitMQ returned, because the queue was deleted. */
const COPY = 'mailroom-copy';

/** By these headers of a message, RabbitMQ would route a copy to further queues ("Sender-selected Distribution"). */
const ROUTES = ['CC', 'BCC'];

/**
 * A queue expires its messages at its head only, so one that waits longer holds back those behind it. A retry therefore waits in rounds of
 * at most this long, milliseconds: it is delivered before it is due, which runs no handler, and waits again.
 */
const ROUND_MS = 10_000;

/** The time in which a broker must confirm a copy: one that is out of memory or disk space blocks its publishers, milliseconds. */
const CONFIRM_MAX_MS = 30_000;

/**
 * The id of a message: its `messageId`, or the hash of its body, and the number of times that it was a dead letter: one that returns from the
 * dead-letter queue is another message. One that returns from the retry queue is the same.
 */
export function rabbitId(
  { messageId, headers }: RabbitIdentity,
  body: Uint8Array,
  retryQueue?: string,
): string {
  const count = numberIn(headers, DEATHS) + deathsOf(headers, retryQueue);
  return `${messageId || createHash('sha256').update(body).digest('hex')}/${count}`;
}

/** The deliveries so far: a quorum queue counts those before; another one only tells whether there were any. */
export function receivesOf(
  headers: RabbitIdentity['headers'],
  redelivered: boolean,
  retryQueue?: string,
): number {
  const before = headers?.['x-delivery-count'];
  const own = typeof before === 'number' ? before + 1 : redelivered ? 2 : 1;
  return own + (deathsOf(headers, retryQueue) > 0 ? 0 : numberIn(headers, RECEIVES));
}

/** The message without the headers by which RabbitMQ would route a copy elsewhere. */
export function withoutRoutes<M extends RabbitMessage>(message: M): M {
  const { headers } = message.properties;
  if (headers === undefined || !ROUTES.some((name) => name in headers)) return message;
  return { ...message, properties: { ...message.properties, headers: without(headers, ROUTES) } };
}

/**
 * Opens a queue for retries that wait. Its messages return to the consumed queue when they expire, and it forgets one only when that queue has
 * confirmed it.
 *
 * @returns puts a copy of a message there; false if the broker did not store it, or did not confirm it within 30 seconds. If it
 * stores that copy later, the copy and the message have one id, so the second is a duplicate
 */
export async function openRetryQueue<M extends RabbitMessage>(
  clock: Clock,
  channel: RabbitRetryChannel,
  queue: string,
  retryQueue: string,
): Promise<(message: M, receives: number, afterMs: number) => Promise<boolean>> {
  await channel.assertQueue(retryQueue, {
    durable: true,
    arguments: {
      'x-queue-type': 'quorum',
      'x-dead-letter-exchange': '',
      'x-dead-letter-routing-key': queue,
      'x-dead-letter-strategy': 'at-least-once',
      'x-overflow': 'reject-publish', // required by that strategy
    },
  });
  const returned = new Set<unknown>();
  channel.on('return', ({ properties }) => returned.add(properties.headers?.[COPY]));
  let copies = 0;
  return (message, receives, afterMs) => {
    const { content, properties } = message;
    const { userId: _, expiration: __, ...kept } = properties as M['properties'] & Record<string, unknown>;
    copies += 1;
    const copy = copies;
    const options = {
      ...kept,
      mandatory: true,
      persistent: true,
      expiration: String(Math.ceil(Math.min(afterMs, ROUND_MS))),
      headers: {
        ...without(properties.headers ?? {}, [...ROUTES, 'x-death', 'x-delivery-count']),
        [DEATHS]: numberIn(properties.headers, DEATHS) + deathsOf(properties.headers, retryQueue),
        [RECEIVES]: receives,
        [COPY]: copy,
      },
    };
    const stored = new Promise<boolean>((resolve) => {
      channel.sendToQueue(retryQueue, Buffer.from(content), options, (error) => {
        // RabbitMQ confirms a returned message, too; the return comes first.
        const isReturned = returned.delete(copy);
        resolve(!error && !isReturned);
      });
    }).catch(() => false); // amqplib cannot write what others can, e.g. headers above 64 KB
    return withDeadline(clock, CONFIRM_MAX_MS, stored, () => false);
  };
}

/** The times that a message was a dead letter since it was last put into the retry queue, whose own are its waits. */
function deathsOf(headers: RabbitIdentity['headers'], retryQueue?: string): number {
  const deaths = headers?.['x-death'];
  return (Array.isArray(deaths) ? deaths : [])
    .filter((death) => retryQueue === undefined || death?.queue !== retryQueue)
    .reduce((sum, death) => sum + Number(death?.count ?? 0), 0);
}

function numberIn(headers: RabbitIdentity['headers'], name: string): number {
  const value = headers?.[name];
  return Number.isSafeInteger(value) ? Number(value) : 0;
}

function without(headers: Headers, names: readonly string[]): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));
}
