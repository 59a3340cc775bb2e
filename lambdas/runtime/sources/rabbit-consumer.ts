import { type Clock, systemClock } from '../base/clock.ts';
import { MailroomError } from '../base/errors.ts';
import { requireGiven } from '../base/given-names.ts';
import { type Consuming, createLoop, type KeepDeadLetter, keeping, sourceClosed } from './consuming.ts';
import type { InboxProcessor } from './inbox-processor.ts';
import {
  openRetryQueue,
  type RabbitMessage,
  type RabbitRetryChannel,
  rabbitId,
  receivesOf,
  withoutRoutes,
} from './rabbit-retries.ts';

/** The part of a connection of `amqplib` that {@link consumeRabbit} uses. */
export interface RabbitConsumerConnection<M extends RabbitMessage> {
  createConfirmChannel(): Promise<RabbitConsumerChannel<M>>;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

/** The part of a confirm channel of `amqplib` that {@link consumeRabbit} uses. */
export interface RabbitConsumerChannel<M extends RabbitMessage> extends RabbitRetryChannel {
  prefetch(count: number): Promise<unknown>;
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
  on(event: 'return', listener: (message: RabbitMessage) => void): unknown;
}

/** RabbitMQ closes a channel that holds a message for 30 minutes (`consumer_timeout`), milliseconds. */
const HOLD_MAX_MS = 20 * 60_000;

/** The most messages that run at a time, unless the app says otherwise. */
const CONCURRENCY = 10;

/**
 * Consumes from a queue of RabbitMQ. A processed message or a duplicate is acknowledged. A retry waits in `retryQueue`; without it, it is held by this
 * process until it is due, at most 20 minutes, and then requeued. A rejected message is kept by `deadLetter`; without it, it is refused (nack), and
 * RabbitMQ moves it to the queue's dead-letter exchange. **A queue without one drops it.**
 *
 * It opens its own channel. At most `concurrency` messages run at a time. **Without `retryQueue`, a retry that waits counts among them**: ten failing
 * messages hold back the healthy ones.
 *
 * @param options.connection - a connection: `await connect(url)` of `amqplib`
 * @param options.queue - the name of an existing queue
 * @param options.handler - the handler, or one for each event
 * @param options.concurrency - the most messages that run or are held at a time, from 1 to 65,535 @default 10
 * @param options.retryQueue - the name of a queue for retries that wait, which is created unless it exists: a quorum queue (RabbitMQ 3.10 or later),
 * from which RabbitMQ moves them back to `queue`. A message in it has `mailroom-` headers and no other exchange or routing key
 * @default this process holds them
 * @param options.deadLetter - keeps a rejected message @default the queue's dead-letter exchange
 * @param options.clock - @default the machine's clock
 * @throws `BAD_ARGUMENT` if `concurrency` is out of range; `BAD_CONSUMER` if a handler cannot be used; the error of the channel, e.g. if `retryQueue`
 * exists with other arguments
 *
 * @example
 * ```ts
 * const connection = await connect(process.env.RABBIT);
 * const consuming = await consumeRabbit({
 *   connection,
 *   queue: 'payments',
 *   retryQueue: 'payments-retry',
 *   inbox,
 *   handler: leased(OrderPlaced, charge),
 * });
 * process.once('SIGTERM', () => void consuming.stop().then(() => connection.close()));
 * await consuming.ended;
 * ```
 */
export async function consumeRabbit<M extends RabbitMessage, H>(options: {
  readonly connection: RabbitConsumerConnection<M>;
  readonly queue: string;
  readonly inbox: InboxProcessor<H>;
  readonly handler: NoInfer<H> | readonly NoInfer<H>[];
  readonly concurrency?: number | undefined;
  readonly retryQueue?: string | undefined;
  readonly deadLetter?: KeepDeadLetter<M> | undefined;
  readonly clock?: Clock | undefined;
}): Promise<Consuming> {
  requireGiven('consumeRabbit', options, 'connection', 'queue', 'inbox', 'handler');
  const { connection, queue, inbox, handler, retryQueue, deadLetter, clock = systemClock } = options;
  const { concurrency = CONCURRENCY } = options;
  if (!(Number.isInteger(concurrency) && concurrency >= 1 && concurrency <= 65_535)) {
    const message = `consumeRabbit: concurrency is ${concurrency}; it must be a whole number from 1 to 65,535. Set it to the messages that one process can run.`;
    throw new MailroomError('BAD_ARGUMENT', message);
  }
  inbox.handles(handler, `RabbitMQ queue ${queue}`);
  let tag: string | undefined;
  let channel: RabbitConsumerChannel<M> | undefined;
  const loop = createLoop(clock, () => (tag === undefined ? undefined : channel?.cancel(tag)));
  loop.ended.catch(() => {}); // until the loop is returned, its error is that of this call
  const closed = (error?: Error) =>
    loop.fail(sourceClosed(`RabbitMQ has closed the channel of queue ${queue}, or its connection.`, error));
  connection.on('error', closed); // without a listener, it would end the process
  const opened = await connection.createConfirmChannel();
  channel = opened;
  opened.on('error', closed);
  opened.on('close', closed);
  await opened.prefetch(concurrency);
  const waits = retryQueue === undefined ? undefined : await openRetryQueue(clock, opened, queue, retryQueue);

  const retry = async (message: M, receives: number, afterMs: number): Promise<void> => {
    if (
      waits !== undefined &&
      afterMs > 0 &&
      !loop.signal.aborted &&
      (await waits(message, receives, afterMs))
    )
      return opened.ack(message); // after the broker has confirmed the copy
    await clock.sleep(Math.min(afterMs, HOLD_MAX_MS), loop.signal);
    opened.nack(message, false, true);
  };
  const handle = async (message: M): Promise<void> => {
    const { content: body, properties, fields } = message;
    const id = rabbitId(properties, body, retryQueue);
    const receives = receivesOf(properties.headers, fields.redelivered, retryQueue);
    const delivered = {
      id,
      body,
      headers: properties.headers,
      receives,
      sentAt: properties.timestamp,
      publishedId: properties.messageId,
      publishedType: properties.type,
    };
    const keep = deadLetter && keeping(inbox, deadLetter, id, withoutRoutes(message));
    const answer = await inbox.process(delivered, handler, { keep });
    if (answer.kind === 'retry') await retry(message, receives, answer.afterMs);
    else if (answer.kind === 'rejected' && deadLetter === undefined) opened.nack(message, false, false);
    else opened.ack(message);
  };
  const consumed = opened.consume(
    queue,
    (message) => {
      if (message === null) loop.fail(sourceClosed(`RabbitMQ has cancelled the consumer of queue ${queue}.`));
      else loop.run(() => handle(message));
    },
    { noAck: false },
  );
  tag = (await consumed).consumerTag;
  return { ended: loop.ended.then(), stop: loop.stop };
}
