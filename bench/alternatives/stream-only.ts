import type { SendingHalf } from './composed-system.ts';
import { chunks } from './queue-delivery.ts';
import { DAY_S, OUTBOX, streamedEvent, writeOrder } from './stored-outbox.ts';

/** The retention of rows in seconds: their TTL is set when they are written, whether they are published or not. */
const RETENTION_S = 7 * DAY_S;

/** The number of times that a batch's failures are retried in place before the batch is returned to the mapping. */
const TRIES_MAX = 5;

/**
 * The outbox of AWS's own examples: the order and its event in one transaction, and everything in the outbox's stream is
 * published. No row records whether its event is published, and the outbox is never read.
 *
 * At least once while the stream keeps the record, for 24 hours: an event that fails for longer, or is discarded as poison, is
 * lost unless an operator finds it.
 *
 * Based on "Implementing the transactional outbox pattern with Amazon EventBridge Pipes" (AWS Compute Blog) and
 * `dynamodb-streams-to-eventbridge-outbox-pattern` (aws-samples/serverless-patterns), with a Lambda function instead of the pipe,
 * which would be billed per request.
 */
export const streamOnly: SendingHalf = {
  name: 'stream-only',
  publishes: 'may lose',
  tables: [{ name: OUTBOX, keys: ['eventId'] }],
  write: (run, index) =>
    writeOrder(run, index, ({ createdAt }) => ({ expiresAt: Math.ceil(createdAt / 1_000) + RETENTION_S })),
  relay: async ({ aws, workload, publish }) => {
    for (const batch of chunks(aws.takeInserts(OUTBOX), workload.batchSize)) {
      aws.book('lambda', 'Invoke', 1);
      let events = batch.map(streamedEvent);
      for (let tries = 0; events.length > 0; tries += 1) {
        if (tries === TRIES_MAX) throw new Error(`${events.length} events are not published`);
        const taken = await publish(events);
        events = events.filter((_, index) => !taken[index]);
      }
    }
  },
};
