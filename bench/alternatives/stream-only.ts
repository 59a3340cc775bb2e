import type { SendingHalf } from './composed-system.ts';
import { chunks } from './queue-delivery.ts';
import { DAY_S, OUTBOX, streamedEvent, writeOrder } from './stored-outbox.ts';

/** How long rows stay, seconds: their time is set when they are born, published or not. */
const RETENTION_S = 7 * DAY_S;

/** How often a batch's failures are tried again in place; what then fails is handed back to the mapping. */
const TRIES_MAX = 5;

/**
 * The outbox of AWS's own examples: the order and its event in one transaction, the outbox's stream, and what is in the
 * stream is published. No row says whether its event is published, and nothing reads the outbox.
 *
 * At least once while the stream keeps the record, 24 hours: what fails for longer, or is given up as poison, is lost unless
 * somebody finds it.
 *
 * After "Implementing the transactional outbox pattern with Amazon EventBridge Pipes" (AWS Compute Blog) and
 * `dynamodb-streams-to-eventbridge-outbox-pattern` (aws-samples/serverless-patterns); a Lambda function in the place of the
 * pipe, which would be billed by the request.
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
