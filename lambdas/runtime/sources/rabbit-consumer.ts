import { createHash } from 'node:crypto';
import { type Clock, systemClock } from '../base/clock.ts';
import { type Consuming, createLoop, type KeepDeadLetter, sourceClosed } from './consuming.ts';
import type { AnswerReason, InboxProcessor } from './inbox-processor.ts';

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

/** The part of a channel of `amqplib` that {@link consumeRabbit} uses. */
export interface RabbitConsumerChannel<M extends RabbitMessage> {
  consume(
    queue: string,
    onMessage: (message: M | null) => void,
    options: { readonly noAck: false },
  ): Promise<{ readonly consumerTag: string }>;
  ack(message: M): void;
  nack(message: M, allUpTo: boolean, requeue: boolean): void;
  cancel(consumerTag: string): Promise<unknown>;
  on(event: 'close', listener: () => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

/** RabbitMQ closes a channel that holds a message for 30 minutes (`consumer_timeout`), milliseconds. */
const HOLD_MAX_MS = 20 * 60_000;

/**
 * Consumes from a queue of RabbitMQ. A processed message or a duplicate is acknowledged. A retry is held until it is due, at most 20 minutes, and then
 * requeued. A rejected message is kept by `deadLetter`; without it, it is refused (nack), and RabbitMQ moves it to the queue's dead-letter
 * exchange. **A queue without one drops it.**
 *
 * Messages run concurrently, at most as many as the channel's `prefetch`: set it before. Messages that are held count, too.
 *
 * @param options.channel - a channel for this consumer only
 * @param options.queue - the name of an existing queue
 * @param options.handler - the handler, or one for each event
 * @param options.deadLetter - keeps a rejected message @default the queue's dead-letter exchange
 * @param options.clock - @default the machine's clock
 * @throws `BAD_CONSUMER` if a handler cannot be used; the error of the channel
 *
 * @example
 * ```ts
 * const channel = await connection.createChannel();
 * await channel.prefetch(10);
 * const consuming = await consumeRabbit({ channel, queue: 'payments', inbox, handler: leased(OrderPlaced, charge) });
 * process.once('SIGTERM', () => void consuming.stop());
 * await consuming.ended;
 * ```
 */
export async function consumeRabbit<M extends RabbitMessage, H>(options: {
  readonly channel: RabbitConsumerChannel<M>;
  readonly queue: string;
  readonly inbox: InboxProcessor<H>;
  readonly handler: NoInfer<H> | readonly NoInfer<H>[];
  readonly deadLetter?: KeepDeadLetter<M> | undefined;
  readonly clock?: Clock | undefined;
}): Promise<Consuming> {
  const { channel, queue, inbox, handler, deadLetter, clock = systemClock } = options;
  inbox.handles(handler, `RabbitMQ queue ${queue}`);
  let tag: string | undefined;
  const loop = createLoop(() => (tag === undefined ? undefined : channel.cancel(tag)));
  channel.on('error', (error) =>
    loop.fail(sourceClosed(`RabbitMQ has closed the channel of queue ${queue}.`, error)),
  );
  channel.on('close', () => loop.fail(sourceClosed(`The channel of queue ${queue} was closed.`)));

  const handle = async (message: M): Promise<void> => {
    const { content: body, properties, fields } = message;
    const id = rabbitId(properties, body);
    const delivered = {
      id,
      body,
      headers: properties.headers,
      receives: receivesOf(properties.headers, fields.redelivered),
      sentAt: properties.timestamp,
      publishedId: properties.messageId,
      publishedType: properties.type,
    };
    const keep = deadLetter && ((reason: AnswerReason) => deadLetter({ id, reason, message }));
    const answer = await inbox.process(delivered, handler, { keep });
    if (answer.kind === 'retry') {
      await clock.sleep(Math.min(answer.afterMs, HOLD_MAX_MS), loop.signal);
      channel.nack(message, false, true);
    } else if (answer.kind === 'rejected' && deadLetter === undefined) channel.nack(message, false, false);
    else channel.ack(message);
  };
  const consumed = channel.consume(
    queue,
    (message) => {
      if (message === null) loop.fail(sourceClosed(`RabbitMQ has cancelled the consumer of queue ${queue}.`));
      else loop.run(() => handle(message));
    },
    { noAck: false },
  );
  tag = (await consumed).consumerTag;
  return loop;
}

/** The properties of a message that identify it. */
export interface RabbitIdentity {
  readonly messageId?: string | null | undefined;
  readonly headers?: Readonly<Record<string, unknown>> | null | undefined;
}

/**
 * The id of a message: its `messageId`, or the hash of its body, and the number of times that it was a dead letter: one that returns from the
 * dead-letter queue is another message.
 */
export function rabbitId({ messageId, headers }: RabbitIdentity, body: Uint8Array): string {
  const deaths = headers?.['x-death'];
  const count = (Array.isArray(deaths) ? deaths : []).reduce(
    (sum, death) => sum + Number(death?.count ?? 0),
    0,
  );
  return `${messageId || createHash('sha256').update(body).digest('hex')}/${count}`;
}

/** The deliveries so far: a quorum queue counts those before; another one only tells whether there were any. */
export function receivesOf(headers: RabbitIdentity['headers'], redelivered: boolean): number {
  const before = headers?.['x-delivery-count'];
  return typeof before === 'number' ? before + 1 : redelivered ? 2 : 1;
}
