import { type Clock, systemClock } from '../base/clock.ts';
import type { Handler } from '../consume/handler.ts';
import { beating, type KeepDeadLetter } from './consuming.ts';
import type { AnswerReason, InboxProcessor } from './inbox-processor.ts';

/** The part of a message of `kafkajs` that {@link kafkaRun} uses. */
export interface KafkaMessage {
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly offset: string;
  readonly timestamp: string;
  readonly headers?: Readonly<Record<string, Buffer | string | (Buffer | string)[] | undefined>> | undefined;
}

/** A message of a partition. */
export interface KafkaRecord {
  readonly topic: string;
  readonly partition: number;
  readonly message: KafkaMessage;
}

/** The part of the payload of `eachBatch` of `kafkajs` that {@link kafkaRun} uses. */
export interface KafkaBatch {
  readonly batch: {
    readonly topic: string;
    readonly partition: number;
    readonly messages: readonly KafkaMessage[];
  };
  resolveOffset(offset: string): void;
  heartbeat(): Promise<void>;
  pause(): () => void;
  isRunning(): boolean;
  isStale(): boolean;
}

/** Options for `consumer.run` of `kafkajs`. */
export interface KafkaRun {
  readonly eachBatchAutoResolve: false;
  readonly eachBatch: (payload: KafkaBatch) => Promise<void>;
  /** Starts no further message, and resolves when the handlers that run have ended. Call it before `consumer.disconnect()`. */
  stop(): Promise<void>;
}

/** Three heartbeats fit into kafkajs's default session timeout of 30 s, with room for a slow one, milliseconds. */
const HEARTBEAT_MS = 5_000;

/**
 * Makes the options of `consumer.run` of kafkajs. The messages of a partition run in their order, one at a time. An offset is resolved, and then
 * committed by kafkajs, only after the inbox has recorded the message, or its dead letter is kept. A retry pauses the partition until it is due: the
 * messages behind it wait, and no message is skipped.
 *
 * @param options.handler - the handler, or one for each event
 * @param options.deadLetter - keeps a rejected message, so that its partition goes on
 * @param options.clock - @default the machine's clock
 * @throws `BAD_CONSUMER` if a handler cannot be used
 *
 * @example
 * ```ts
 * const run = kafkaRun({
 *   inbox,
 *   handler: leased(OrderPlaced, charge),
 *   deadLetter: ({ message: { message } }) => producer.send({ topic: 'dead.payments', messages: [message] }),
 * });
 * await consumer.subscribe({ topics: ['orders'] });
 * await consumer.run({ ...run, partitionsConsumedConcurrently: 3 });
 * process.once('SIGTERM', () => void run.stop().then(() => consumer.disconnect()));
 * ```
 */
export function kafkaRun(options: {
  readonly inbox: InboxProcessor;
  readonly handler: Handler | readonly Handler[];
  readonly deadLetter: KeepDeadLetter<KafkaRecord>;
  readonly clock?: Clock | undefined;
}): KafkaRun {
  const { inbox, handler, deadLetter, clock = systemClock } = options;
  inbox.handles(handler);
  const over = new AbortController();
  const running = new Set<Promise<void>>();
  /** The deliveries of the message that each partition waits for, by its id. Kafka counts none. */
  const deliveries = new Map<string, { readonly id: string; readonly count: number }>();

  const work = async (payload: KafkaBatch): Promise<void> => {
    const { topic, partition, messages } = payload.batch;
    const place = `${topic}/${partition}`;
    for (const message of messages) {
      if (over.signal.aborted || !payload.isRunning() || payload.isStale()) return;
      const id = `${place}/${message.offset}`;
      const before = deliveries.get(place);
      // From 2: an earlier process may have received it, too.
      const receives = before?.id === id ? before.count + 1 : 2;
      const { value, headers, timestamp } = message;
      const delivered = { id, body: value ?? '', headers, receives, sentAt: Number(timestamp) };
      const keep = (reason: AnswerReason) =>
        deadLetter({ id, reason, message: { topic, partition, message } });
      const answer = await beating(
        clock,
        HEARTBEAT_MS,
        () => payload.heartbeat(),
        () => inbox.process(delivered, handler, { keep }),
      );
      if (answer.kind === 'retry') {
        deliveries.set(place, { id, count: receives });
        const resume = payload.pause();
        void clock.sleep(answer.afterMs, over.signal).then(() => over.signal.aborted || resume());
        return;
      }
      deliveries.delete(place);
      payload.resolveOffset(message.offset);
    }
  };
  return {
    eachBatchAutoResolve: false,
    eachBatch: async (payload) => {
      const ran = work(payload);
      running.add(ran);
      await ran.finally(() => running.delete(ran));
    },
    stop: async () => {
      over.abort();
      await Promise.allSettled(running);
    },
  };
}
