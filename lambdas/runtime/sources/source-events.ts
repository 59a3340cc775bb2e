import { MailroomError } from '../base/errors.ts';
import { rabbitId, receivesOf } from './rabbit-retries.ts';
import type { SourceMessage } from './source-message.ts';

/** One record of a batch that Lambda received from a stream, a topic or a broker. */
export interface SourceRecord {
  readonly message: SourceMessage;
  /** Records of one lane run in their order. */
  readonly lane: string;
  /** Its identifier in a partial batch response. */
  readonly item: unknown;
  /** The record as Lambda delivered it. */
  readonly record: unknown;
}

/** A batch of one event source. */
export interface SourceBatch {
  readonly records: readonly SourceRecord[];
  /**
   * The failures that a partial batch response names, given those records that are not done, in the order of the batch: of a stream, the
   * first, from which on Lambda delivers again; `undefined` if the source knows no partial failures.
   */
  readonly failures?: ((unfinished: readonly SourceRecord[]) => readonly SourceRecord[]) | undefined;
}

interface KinesisRecord {
  readonly eventID: string;
  readonly eventSourceARN: string;
  readonly kinesis: {
    readonly data: string;
    readonly partitionKey: string;
    readonly sequenceNumber: string;
    readonly approximateArrivalTimestamp: number;
  };
}

interface LambdaKafkaRecord {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly timestamp: number;
  readonly value?: string | null | undefined;
  readonly headers?: readonly Readonly<Record<string, unknown>>[] | undefined;
}

interface RabbitRecord {
  readonly data: string;
  readonly redelivered: boolean;
  readonly basicProperties: {
    readonly messageId?: string | null;
    readonly type?: string | null;
    readonly headers?: Readonly<Record<string, unknown>> | null;
  };
}

/** The event of an event source mapping that {@link readBatch} reads. */
interface SourceEvent {
  readonly eventSource?: string | undefined;
  readonly eventSourceArn?: string | undefined;
  readonly Records?: readonly { readonly eventSource?: string | undefined }[] | undefined;
  readonly records?: Readonly<Record<string, readonly LambdaKafkaRecord[]>> | undefined;
  readonly rmqMessagesByQueue?: Readonly<Record<string, readonly RabbitRecord[]>> | undefined;
}

/**
 * Reads the batch of an event source mapping (Lambda developer guide: "Process Kinesis records", "MSK", "Self-managed Apache Kafka", "Amazon MQ").
 *
 * @throws `BAD_ARGUMENT` if it is of another source
 */
export function readBatch(event: unknown): SourceBatch {
  const { eventSource, Records, records, rmqMessagesByQueue } = (event ?? {}) as SourceEvent;
  const source = eventSource ?? Records?.[0]?.eventSource;
  if (source === 'aws:kinesis' && Records !== undefined) {
    return {
      records: (Records as unknown as readonly KinesisRecord[]).map(ofKinesis),
      failures: (unfinished) => unfinished.slice(0, 1),
    };
  }
  if ((source === 'aws:kafka' || source === 'SelfManagedKafka') && records !== undefined)
    return { records: Object.entries(records).flatMap(ofPartition), failures: (unfinished) => unfinished };
  if (source === 'aws:rmq' && rmqMessagesByQueue !== undefined)
    return { records: Object.entries(rmqMessagesByQueue).flatMap(ofRabbitQueue) };
  throw new MailroomError(
    'BAD_ARGUMENT',
    `createSourceHandler received an event of the source ${JSON.stringify(source)}; allowed: aws:kinesis, aws:kafka, SelfManagedKafka, aws:rmq. For SQS, use lambdaConsumer.`,
  );
}

function ofKinesis(record: KinesisRecord): SourceRecord {
  const { data, partitionKey, sequenceNumber, approximateArrivalTimestamp } = record.kinesis;
  const stream = record.eventSourceARN.slice(record.eventSourceARN.lastIndexOf('/') + 1);
  return {
    message: {
      id: `${stream}/${record.eventID}`, // the shard and the sequence number
      body: Buffer.from(data, 'base64'),
      sentAt: approximateArrivalTimestamp,
    },
    lane: partitionKey,
    item: sequenceNumber,
    record,
  };
}

function ofPartition([partitionName, records]: [string, readonly LambdaKafkaRecord[]]): SourceRecord[] {
  return records.map((record) => {
    const { topic, partition, offset, timestamp, value, headers = [] } = record;
    return {
      message: {
        id: `${topic}/${partition}/${offset}`,
        body: value == null ? null : Buffer.from(value, 'base64'),
        headers: Object.assign({}, ...headers),
        sentAt: timestamp,
      },
      lane: partitionName,
      item: { 'topic-partition': partitionName, offset },
      record,
    };
  });
}

function ofRabbitQueue([queueName, records]: [string, readonly RabbitRecord[]]): SourceRecord[] {
  return records.map((record, index) => {
    const { data, redelivered, basicProperties } = record;
    const headers = basicProperties.headers ?? {};
    const body = Buffer.from(data, 'base64');
    const id = rabbitId({ messageId: basicProperties.messageId, headers }, body);
    const { messageId: publishedId, type: publishedType } = basicProperties;
    const receives = receivesOf(headers, redelivered);
    const message = { id, body, headers, receives, publishedId, publishedType };
    return { message, lane: `${queueName}/${index}`, item: id, record };
  });
}
