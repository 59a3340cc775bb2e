import type { ConsumerConfig } from '../../../../lambdas/runtime/base/consumer-config.ts';
import { DAY_MS } from '../../../../lambdas/runtime/base/units.ts';
import type { Handler } from '../../../../lambdas/runtime/consume/handler.ts';
import type { Payloads } from '../../../../lambdas/runtime/events/payloads.ts';
import type { ConsumerEntry, Directory } from '../../../../lambdas/runtime/operations/directory.ts';
import type { QueueMessage, Queues } from '../../../../lambdas/runtime/operations/queues.ts';
import { createRelaySweep, createSweepPass } from '../../../../lambdas/runtime/relay/relay-sweep.ts';
import { createConsumer } from '../../../../lambdas/runtime/sources/sqs/consumer.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import type { RandomBytes } from '../../../../lambdas/runtime/store/event-id.ts';
import { lambdaContext, type MemoryBusOptions } from '../../../../testing/index.ts';
import { consumerConfig, relayConfig, rig, runThrough, ThingHappened } from '../../../support/runtime-rig.ts';

/** The retention of the dead-letter queues. */
export const RETENTION_MS = 14 * DAY_MS;

/** The rig's consumer, as the directory has it. */
export const worker = {
  stack: 'things-dev',
  stackPath: 'dev/Things',
  name: consumerConfig.consumer,
  service: consumerConfig.service,
  events: [ThingHappened],
  rule: 'worker-rule',
  queue: 'queue',
  deadLetterQueue: 'dead-letters',
  undeliveredQueue: 'undelivered',
  function: 'worker-function',
  maxAttempts: consumerConfig.maxAttempts,
  batchSize: 10,
  inboxRetentionDays: consumerConfig.inboxRetentionDays,
} satisfies ConsumerEntry;

export const directory: Directory = {
  mailroom: {
    stack: 'mailroom-dev',
    table: relayConfig.tableName,
    bus: 'bus',
    shards: relayConfig.shards,
    streamFunction: 'stream-function',
    sweepFunction: 'sweep-function',
    sweepRule: 'sweep-rule',
    failureQueue: 'failures',
  },
  consumers: [worker],
};

/** The ARN of a queue, whose URL is its name. */
export function queueArn(url: string): string {
  return `arn:aws:sqs:eu-west-1:111122223333:${url}`;
}

/** A whole Mailroom on the rig: what is committed is published by a sweep, and the consumer's queue gets it. */
export function mailroomInMemory(
  handlers: readonly Handler[],
  options: {
    readonly bus?: MemoryBusOptions;
    readonly random?: RandomBytes;
    readonly config?: Partial<ConsumerConfig>;
    readonly payloads?: Payloads | undefined;
  } = {},
) {
  const made = rig(options);
  const { clock, queue, bus, table, telemetry } = made;
  const { random, payloads } = options;
  const parts = { ...made, outbox: createOutbox({ config: consumerConfig, table, clock, random, payloads }) };
  bus.routeTo(queue);
  const config = { ...consumerConfig, ...options.config };
  const handle = createConsumer({ config, table, queue, handlers, clock, telemetry, random, payloads });
  const sweeper = createSweepPass({ ...parts, random, config: relayConfig });
  const letters: Record<string, QueueMessage[]> = {};
  const shown: string[] = [];

  const queues: Queues = {
    depth: async (url) => {
      const waiting = url === worker.queue ? queue.messages().length : lettersOf(url).length;
      return { arn: queueArn(url), waiting, inFlight: 0, retentionMs: RETENTION_MS };
    },
    receive: async (url, { limit }) => {
      if (url === worker.queue) throw new Error('Only the consumer receives from its queue');
      return lettersOf(url).slice(0, limit);
    },
    show: async (_url, { messageId }) => {
      shown.push(messageId);
    },
    send: () => Promise.reject(new Error('A command that only looks sends nothing')),
    remove: () => Promise.reject(new Error('A command that only looks removes nothing')),
  };

  function lettersOf(url: string): QueueMessage[] {
    const added = letters[url] ?? [];
    if (url !== worker.deadLetterQueue) return added;
    const dead = queue.deadLetters().map(({ messageId, body, sentAt }) => ({
      messageId,
      body,
      sentAt,
      receiptHandle: messageId,
      attributes: {},
    }));
    return [...dead, ...added];
  }

  return {
    ...parts,
    directory,
    queues,
    invokeSweep: (request: unknown) =>
      createRelaySweep({ ...parts, config: relayConfig })(request, lambdaContext({ clock })),
    /** The consumer's function, as Lambda calls it. */
    invoke: (request: unknown) => handle(request as Parameters<typeof handle>[0], lambdaContext({ clock })),
    /** The ids of the dead letters that were shown again after a look. */
    shown,
    /** Puts a message into a dead-letter queue, as if it had come there some other way. */
    addDeadLetter: (url: string, letter: QueueMessage) => {
      letters[url] = [...(letters[url] ?? []), letter];
    },
    /** Lets the lease of the stream pass, and the first age of the minute, and sweeps. */
    publish: async () => {
      await clock.advance(150_000);
      await runThrough(clock, sweeper(clock.now() + 60_000));
    },
    /** One round of what Lambda does. */
    deliver: () => runThrough(clock, queue.deliver(handle, 10, lambdaContext({ clock }))),
    /** Rounds until the queue is empty. */
    drain: async () => {
      for (let round = 0; round < 30 && queue.messages().length > 0; round += 1) {
        await runThrough(clock, queue.deliver(handle, 10, lambdaContext({ clock })));
        const next = Math.min(...queue.messages().map(({ visibleAt }) => visibleAt));
        if (Number.isFinite(next)) await clock.advance(Math.max(1, next - clock.now()));
      }
    },
  };
}
