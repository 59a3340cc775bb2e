import pMap from 'p-map';
import { type Clock, systemClock } from '../base/clock.ts';
import { MailroomError } from '../base/errors.ts';
import { requireGiven } from '../base/given-names.ts';
import type { InvocationContext } from '../observe/telemetry.ts';
import { type KeepDeadLetter, keeping } from './consuming.ts';
import type { InboxProcessor } from './inbox-processor.ts';
import { readBatch, type SourceRecord } from './source-events.ts';

/** The response to a batch of a stream or topic. */
export interface SourceBatchResponse {
  /** A sequence number of Kinesis, or a partition and an offset of Kafka. */
  readonly batchItemFailures: readonly { readonly itemIdentifier: unknown }[];
}

/** The most messages that run at a time. */
const CONCURRENCY = 10;

/** Lambda repeats a failed batch at once, so the response waits for the next attempt, at most this long, milliseconds. */
const HOLD_MAX_MS = 10_000;

/** The time that remains for the response, milliseconds. */
const RESPONSE_MS = 2_000;

/**
 * Creates the handler of a Lambda function whose event source is Kinesis, Amazon MSK, self-managed Apache Kafka, or RabbitMQ of Amazon MQ.
 *
 * Messages with the same partition key, or of the same partition, run in their order; a retry holds back those behind it. A rejected message is kept by
 * `deadLetter` and does not hold back others. A batch with a retry fails as a whole, and Lambda repeats it: what is done is then a duplicate. With
 * `partialFailures`, Kinesis repeats only from the first record on that is not done, and Kafka only those that are not.
 *
 * @param options.handler - the handler, or one for each event
 * @param options.deadLetter - keeps a rejected message: its record, as Lambda delivered it
 * @param options.partialFailures - the event source mapping has `ReportBatchItemFailures`: Kinesis, and Kafka in provisioned mode. Without that
 * setting, **Lambda ignores the response, and retries are lost**. @default false
 * @param options.clock - @default the machine's clock
 * @returns a handler that throws `BATCH_RETRIED` if a batch fails as a whole
 * @throws `BAD_CONSUMER` if a handler cannot be used
 *
 * @example
 * ```ts
 * export const handler = createSourceHandler({
 *   inbox: createInboxProcessor({ config, table }),
 *   handler: leased(OrderPlaced, charge),
 *   deadLetter: (rejected) => sqs.sendMessage({ QueueUrl, MessageBody: deadLetterText(rejected) }),
 *   partialFailures: true,
 * });
 * ```
 */
export function createSourceHandler<H>(options: {
  readonly inbox: InboxProcessor<H>;
  readonly handler: NoInfer<H> | readonly NoInfer<H>[];
  readonly deadLetter: KeepDeadLetter<unknown>;
  readonly partialFailures?: boolean | undefined;
  readonly clock?: Clock | undefined;
}): (event: unknown, context: InvocationContext) => Promise<SourceBatchResponse> {
  requireGiven('createSourceHandler', options, 'inbox', 'handler', 'deadLetter');
  const { inbox, handler, deadLetter, partialFailures = false, clock = systemClock } = options;
  inbox.handles(handler, 'an event source mapping');

  return async (event, context) => {
    const { records, failures } = readBatch(event);
    const done = new Set<SourceRecord>();
    let retryInMs = HOLD_MAX_MS;
    await pMap(
      lanesOf(records),
      async (lane) => {
        for (const one of lane) {
          const { message, record } = one;
          const keep = keeping(inbox, deadLetter, message.id, record);
          const remainingMs = context.getRemainingTimeInMillis();
          const answer = await inbox.process(message, handler, { keep, remainingMs });
          if (answer.kind === 'retry') {
            retryInMs = Math.min(retryInMs, answer.afterMs);
            return;
          }
          done.add(one);
        }
      },
      { concurrency: CONCURRENCY },
    );
    const unfinished = records.filter((one) => !done.has(one));
    if (unfinished.length === 0) return { batchItemFailures: [] };
    const holdMs = Math.min(retryInMs, context.getRemainingTimeInMillis() - RESPONSE_MS);
    if (holdMs > 0) await clock.sleep(holdMs);
    if (!partialFailures || failures === undefined) throw batchRetried(unfinished.length, records.length);
    return { batchItemFailures: failures(unfinished).map(({ item }) => ({ itemIdentifier: item })) };
  };
}

function lanesOf(records: readonly SourceRecord[]): SourceRecord[][] {
  const lanes = new Map<string, SourceRecord[]>();
  for (const record of records) lanes.set(record.lane, [...(lanes.get(record.lane) ?? []), record]);
  return [...lanes.values()];
}

function batchRetried(unfinished: number, all: number): MailroomError {
  return new MailroomError(
    'BATCH_RETRIED',
    `${unfinished} of the ${all} messages of the batch are not done, so Lambda repeats the batch. Those that are done are then duplicates: their handlers do not run again. The log has the reason of each.`,
  );
}
