import { PutCommand } from '@aws-sdk/lib-dynamodb';
import { plainConsumer, powertoolsInbox, transactionalInbox } from './inboxes.ts';
import { DAY_S, OUTBOX, streamedEvent, writeOrder } from './outbox-rows.ts';
import { chunks } from './queue-delivery.ts';
import { statusIndex } from './status-index.ts';
import { composedSystem, type SendingHalf, type System } from './system.ts';
import { twoTable } from './two-table.ts';
import { DOMAIN, orderRow, storedEvent } from './workload.ts';

/** The number of attempts a handler makes to publish before it fails. */
const TRIES_MAX = 3;

/**
 * Publishing without an outbox, the floor: the handler writes its row, then calls PutEvents, again when the bus refuses. A crash
 * or a long outage between the two loses the event; this is the "dual write" that the AWS Compute Blog warns of ("Implementing
 * the transactional outbox pattern with Amazon EventBridge Pipes").
 */
const direct: SendingHalf = {
  name: 'direct',
  publishes: 'may lose',
  tables: [],
  write: async ({ documents, publish, workload }, index) => {
    await documents.send(new PutCommand({ TableName: DOMAIN.name, Item: orderRow(index) }));
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const [published] = await publish([storedEvent(index, workload.payloadBytes)]);
      if (published) return;
    }
    throw new Error(`Order ${index} is written, but its event is not published`);
  },
};

/** The retention of rows in seconds: their TTL is set when they are written, whether they are published or not. */
const STREAM_ONLY_RETENTION_S = 7 * DAY_S;

/** The number of times that a batch's failures are retried in place before the batch is returned to the mapping. */
const STREAM_TRIES_MAX = 5;

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
const streamOnly: SendingHalf = {
  name: 'stream-only',
  publishes: 'may lose',
  tables: [{ name: OUTBOX, keys: ['eventId'] }],
  write: (run, index) =>
    writeOrder(run, index, ({ createdAt }) => ({
      expiresAt: Math.ceil(createdAt / 1_000) + STREAM_ONLY_RETENTION_S,
    })),
  relay: async ({ aws, workload, publish }) => {
    for (const batch of chunks(aws.takeInserts(OUTBOX), workload.batchSize)) {
      aws.book('lambda', 'Invoke', 1);
      let events = batch.map(streamedEvent);
      for (let tries = 0; events.length > 0; tries += 1) {
        if (tries === STREAM_TRIES_MAX) throw new Error(`${events.length} events are not published`);
        const taken = await publish(events);
        events = events.filter((_, index) => !taken[index]);
      }
    }
  },
};

/** The systems measured next to Mailroom. Systems with the same inbox show the difference between outboxes, and vice versa. */
export const ALTERNATIVES: readonly System[] = [
  composedSystem('direct', direct, plainConsumer),
  composedSystem('stream-only+transactional-inbox', streamOnly, transactionalInbox),
  composedSystem('two-table+transactional-inbox', twoTable, transactionalInbox),
  composedSystem('status-index+powertools', statusIndex, powertoolsInbox),
  composedSystem('status-index+transactional-inbox', statusIndex, transactionalInbox),
];
