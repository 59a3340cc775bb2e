import { type Clock, systemClock } from '../base/clock.ts';
import { MailroomError } from '../base/errors.ts';
import { requireGiven } from '../base/given-names.ts';
import { type Consuming, createLoop, type KeepDeadLetter, keeping, sourceClosed } from './consuming.ts';
import type { InboxProcessor } from './inbox-processor.ts';
import { type HeldMessages, type KafkaBatch, type KafkaMessage, runBatch } from './kafka-batch.ts';

/** A message of a partition. */
export interface KafkaRecord {
  readonly topic: string;
  readonly partition: number;
  readonly message: KafkaMessage;
}

/** The part of a consumer of `kafkajs` that {@link kafkaRun} uses. */
export interface KafkaConsumer {
  on(
    event: 'consumer.crash',
    listener: (event: { readonly payload: { readonly error: Error; readonly restart: boolean } }) => void,
  ): unknown;
}

/** Options for `consumer.run` of `kafkajs`, and its end. */
export interface KafkaRun extends Consuming {
  readonly eachBatchAutoResolve: false;
  /** The interval at which resolved offsets are committed while a batch runs, milliseconds. */
  readonly autoCommitInterval: number;
  readonly eachBatch: (payload: KafkaBatch) => Promise<void>;
  /** As of any loop. Call it before `consumer.disconnect()`. */
  stop(): Promise<void>;
}

/** After a crash, the messages of this time are duplicates, milliseconds. */
const COMMIT_MS = 5_000;

/** The time after which a partition is read again in which a key waits: other keys may have new messages, milliseconds. */
const READ_AGAIN_MS = 1_000;

/**
 * Makes the options of `consumer.run` of kafkajs. The messages of a partition run in their order, one at a time, or with `concurrency` in the order of
 * each key. An offset is resolved, and then committed by kafkajs, only after the inbox has recorded the message and every one before it in the
 * partition, or their dead letters are kept. A retry holds back the messages behind it, with `concurrency` those of its key; no message is skipped.
 *
 * `ended` rejects (`SOURCE_CLOSED`) if kafkajs ends the consumer, e.g. because of a batch in a codec that it does not know.
 *
 * @param options.consumer - the consumer that runs it
 * @param options.handler - the handler, or one for each event
 * @param options.deadLetter - keeps a rejected message, so that its partition goes on
 * @param options.concurrency - the number of messages of a partition that run at a time. Messages without a key have no order then @default 1
 * @param options.clock - @default the machine's clock
 * @throws `BAD_CONSUMER` if a handler cannot be used; `BAD_ARGUMENT` if `concurrency` is not a whole number from 1
 *
 * @example
 * ```ts
 * const consumer = kafka.consumer({ groupId: 'payments' });
 * const run = kafkaRun({
 *   consumer,
 *   inbox,
 *   handler: leased(OrderPlaced, charge),
 *   deadLetter: ({ message: { message } }) => producer.send({ topic: 'dead.payments', messages: [message] }),
 *   concurrency: 10,
 * });
 * await consumer.connect();
 * await consumer.subscribe({ topics: ['orders'], fromBeginning: true }); // without it, what was sent before the group's first start is skipped
 * await consumer.run({ ...run, partitionsConsumedConcurrently: 3 });
 * process.once('SIGTERM', () => void run.stop().then(() => consumer.disconnect()));
 * await run.ended;
 * ```
 */
export function kafkaRun<H>(options: {
  readonly consumer: KafkaConsumer;
  readonly inbox: InboxProcessor<H>;
  readonly handler: NoInfer<H> | readonly NoInfer<H>[];
  readonly deadLetter: KeepDeadLetter<KafkaRecord>;
  readonly concurrency?: number | undefined;
  readonly clock?: Clock | undefined;
}): KafkaRun {
  requireGiven('kafkaRun', options, 'consumer', 'inbox', 'handler', 'deadLetter');
  const { consumer, inbox, handler, deadLetter, concurrency = 1, clock = systemClock } = options;
  if (!(Number.isInteger(concurrency) && concurrency >= 1)) {
    const message = `kafkaRun: concurrency is ${concurrency}; it must be a whole number from 1. Set it to the messages of a partition that one process can run.`;
    throw new MailroomError('BAD_ARGUMENT', message);
  }
  inbox.handles(handler, 'Kafka');
  const loop = createLoop(clock, () => {});
  consumer.on('consumer.crash', ({ payload: { error, restart } }) => {
    if (!restart) loop.fail(crashed(error));
  });
  const partitions = new Map<string, HeldMessages>();

  const work = async (payload: KafkaBatch): Promise<void> => {
    const { topic, partition } = payload.batch;
    const place = `${topic}/${partition}`;
    const held: HeldMessages = partitions.get(place) ?? new Map();
    partitions.set(place, held);
    const dueAt = await runBatch(payload, {
      clock,
      concurrency,
      held,
      isOver: () => loop.signal.aborted,
      process: (message, receives) => {
        const id = `${place}/${message.offset}`;
        const { value, headers, timestamp } = message;
        const keep = keeping(inbox, deadLetter, id, { topic, partition, message });
        const delivered = { id, body: value, headers, receives, sentAt: Number(timestamp) };
        return inbox.process(delivered, handler, { keep });
      },
    });
    if (loop.signal.aborted) {
      payload.pause(); // kafkajs would fetch the same messages until it is disconnected
      return;
    }
    if (dueAt === undefined) return;
    const waitMs = dueAt - clock.now();
    const resume = payload.pause();
    void clock
      .sleep(concurrency === 1 ? waitMs : Math.min(waitMs, READ_AGAIN_MS), loop.signal)
      .then(() => loop.signal.aborted || resume());
  };
  return {
    eachBatchAutoResolve: false,
    autoCommitInterval: COMMIT_MS,
    eachBatch: (payload) => new Promise((resolve) => loop.run(() => work(payload).finally(resolve))),
    ended: loop.ended,
    stop: loop.stop,
  };
}

function crashed(error: Error): MailroomError {
  const remedy =
    error.name === 'KafkaJSNotImplemented'
      ? ' Register the codec in CompressionCodecs of kafkajs (docs/sources.md).'
      : '';
  return sourceClosed(`kafkajs has ended the consumer: ${error.message}.${remedy}`, error);
}
