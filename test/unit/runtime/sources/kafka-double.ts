import type { KafkaBatch } from '../../../../lambdas/runtime/sources/kafka-batch.ts';
import type { KafkaConsumer, KafkaRun } from '../../../../lambdas/runtime/sources/kafka-consumer.ts';

/** A message of the double: its body, and its key. */
type Sent = readonly [body: string | null, key?: string];

/** A partition of Kafka, from which kafkajs fetches from the first offset on that is not resolved, and the consumer that fetches. */
export function kafkaDouble(sent: readonly Sent[], timestamp = '1767225600000') {
  const log: string[] = [];
  let next = 0;
  let paused = false;
  let stale = false;
  let beats = 0;
  let beatFailure: Error | undefined;
  let crash: Parameters<KafkaConsumer['on']>[1] = () => {};
  const payload = (): KafkaBatch => ({
    batch: {
      topic: 'orders',
      partition: 3,
      messages: sent
        .map(([body, key], offset) => ({
          key: key === undefined ? null : Buffer.from(key),
          value: body === null ? null : Buffer.from(body),
          offset: String(offset),
          timestamp,
          headers: { source: Buffer.from('things') },
        }))
        .slice(next),
    },
    resolveOffset: (offset) => {
      next = Number(offset) + 1;
      log.push(`resolve ${offset}`);
    },
    commitOffsetsIfNecessary: async () => {},
    heartbeat: async () => {
      beats += 1;
      if (beatFailure !== undefined) throw beatFailure;
    },
    pause: () => {
      paused = true;
      log.push('pause');
      return () => {
        paused = false;
        log.push('resume');
      };
    },
    isRunning: () => true,
    isStale: () => stale,
  });
  const consumer: KafkaConsumer = {
    on: (_, listener) => {
      crash = listener;
    },
  };
  return {
    log,
    consumer,
    beats: () => beats,
    payload,
    crash: (error: Error, restart: boolean) => crash({ payload: { error, restart } }),
    /** Another consumer of the group has done the messages before this offset; or the committed offset was this. */
    moveTo: (offset: number) => {
      next = offset;
    },
    lose: () => {
      stale = true;
    },
    /** Heartbeats fail from now on, with an error of the protocol. */
    failBeats: (type: string) => {
      beatFailure = Object.assign(new Error('A beat failed'), { type });
    },
    /** Fetches once, unless the partition is paused. */
    fetch: async (run: Pick<KafkaRun, 'eachBatch'>) => {
      if (!paused) await run.eachBatch(payload());
    },
  };
}
