import { EventEmitter } from 'node:events';
import type {
  JetStreamPublisher,
  KafkaClient,
  KafkaProduced,
  KinesisSender,
  NatsConnection,
  RabbitChannel,
  RabbitConnection,
  SnsPublisher,
  SqsSender,
} from '../../lambdas/runtime/bridge.ts';
import type { Arrived, BridgeFault } from './bridge-contract.ts';

/** The other side of a target in memory. */
export interface Broker {
  readonly messages: Arrived[];
  fault: BridgeFault | undefined;
  /** The number of connections that were opened. */
  connections: number;
}

export const broker = (): Broker => ({ messages: [], fault: undefined, connections: 0 });

const MIB = 1024 * 1024;

const error = (name: string, fields: object = {}) =>
  Object.assign(new Error(`${name} of the double`), { name }, fields);

/** What a call of AWS throws. */
function awsFault({ fault }: Broker, missing: string): Promise<void> {
  if (fault === 'missing') return Promise.reject(error(missing));
  if (fault === 'denied') return Promise.reject(error('AccessDeniedException'));
  if (fault === 'away') return Promise.reject(error('TimeoutError'));
  return fault === 'silent' ? new Promise(() => {}) : Promise.resolve();
}

interface AwsEntry {
  readonly Id: string;
  readonly MessageAttributes: Readonly<Record<string, { readonly StringValue: string }>>;
  readonly MessageGroupId?: string;
  readonly MessageDeduplicationId?: string;
}

/** As SQS and SNS answer: the entries that are refused, beside those that are stored. */
function batch(side: Broker, entries: readonly (AwsEntry & { readonly body: string })[], maxBytes: number) {
  const seen = new Set(side.messages.map(({ id }) => id));
  const tooLarge = entries.filter(({ body }) => Buffer.byteLength(body) > maxBytes);
  const stored = entries.filter((entry) => !tooLarge.includes(entry));
  for (const { body, MessageGroupId: key, MessageDeduplicationId: id, MessageAttributes } of stored) {
    const headers = Object.entries(MessageAttributes).map(([name, { StringValue }]) => [name, StringValue]);
    if (id === undefined || !seen.has(id))
      side.messages.push({ body, key, id, headers: Object.fromEntries(headers) });
  }
  return {
    Successful: stored.map(({ Id }) => ({ Id, MessageId: `${Id}-${side.messages.length}` })),
    Failed: tooLarge.map(({ Id }) => ({
      Id,
      Code: 'InvalidParameterValue',
      Message: 'One or more parameters are invalid',
    })),
  };
}

export const sqsDouble = (side: Broker): SqsSender => ({
  sendMessageBatch: async ({ Entries }) => {
    await awsFault(side, 'QueueDoesNotExist');
    return batch(
      side,
      Entries.map((entry) => ({ ...entry, body: entry.MessageBody })),
      MIB,
    );
  },
});

export const snsDouble = (side: Broker): SnsPublisher => ({
  publishBatch: async ({ PublishBatchRequestEntries }) => {
    await awsFault(side, 'NotFoundException');
    return batch(
      side,
      PublishBatchRequestEntries.map((entry) => ({ ...entry, body: entry.Message })),
      MIB / 4,
    );
  },
});

export const kinesisDouble = (side: Broker): KinesisSender => ({
  putRecords: async ({ Records }) => {
    await awsFault(side, 'ResourceNotFoundException');
    if (Records.some(({ Data }) => Data.byteLength > MIB)) throw error('ValidationException');
    return {
      Records: Records.map(({ Data, PartitionKey: key }) => {
        side.messages.push({ body: Buffer.from(Data).toString(), key, headers: {} });
        return { ShardId: 'shardId-000000000000', SequenceNumber: String(side.messages.length) };
      }),
    };
  },
});

const TYPES: Readonly<Record<string, string>> = {
  missing: 'UNKNOWN_TOPIC_OR_PARTITION',
  denied: 'TOPIC_AUTHORIZATION_FAILED',
};

/** The leaders of the partitions of a topic. */
const LEADERS = [1, 2, 1];

/**
 * As `kafkajs` and Kafka: a failed call takes some turns; a producer that is disconnected meanwhile fails those that run. If a partition refuses its
 * messages, the call fails, although the others have stored theirs; a batch with the same numbers is stored once.
 */
export const kafkaDouble = (side: Broker) => (): KafkaClient => ({
  producer: ({ createPartitioner }) => {
    let [running, closed] = [0, false];
    const partitionMetadata = LEADERS.map((leader) => ({ leader }));
    const partitioner = createPartitioner();
    const numbers = LEADERS.map(() => 0);
    const batches = new Map<string, number>();
    const store = (partition: number, messages: readonly KafkaProduced[]) => {
      const batch = `${partition}/${numbers[partition]}/${messages.length}`;
      const baseOffset = batches.get(batch) ?? side.messages.length + 1;
      if (batches.has(batch)) return baseOffset;
      if (messages.reduce((sum, { value }) => sum + value.length, 0) > MIB) return undefined;
      batches.set(batch, baseOffset);
      for (const { key, value: body, headers } of messages) side.messages.push({ body, key, headers });
      return baseOffset;
    };
    return {
      connect: async () => {
        side.connections += 1;
        if (side.fault === 'away')
          throw error('KafkaJSNumberOfRetriesExceeded', { cause: error('KafkaJSConnectionError') });
        if (side.fault === 'denied') throw error('KafkaJSSASLAuthenticationError');
      },
      disconnect: async () => {
        closed = true;
      },
      send: async ({ messages }) => {
        if (side.fault === 'silent') return new Promise<never>(() => {});
        running += 1;
        for (let turn = 0; turn < running; turn += 1) await new Promise(setImmediate);
        if (closed || side.fault === 'away') throw error('KafkaJSConnectionClosedError');
        const type = side.fault && TYPES[side.fault];
        const refused = (of: string) => error('KafkaJSProtocolError', { type: of });
        if (type !== undefined) throw error('KafkaJSNumberOfRetriesExceeded', { cause: refused(type) });
        const partitions = new Map<number, KafkaProduced[]>();
        for (const message of messages) {
          const partition = partitioner({ partitionMetadata, message });
          partitions.set(partition, [...(partitions.get(partition) ?? []), message]);
        }
        const answers = [...partitions].map(([partition, those]) => ({
          partition,
          base: store(partition, those),
        }));
        if (answers.some(({ base }) => base === undefined)) throw refused('MESSAGE_TOO_LARGE');
        for (const [partition, those] of partitions)
          numbers[partition] = (numbers[partition] ?? 0) + those.length;
        return answers.map(({ partition, base }) => ({ partition, baseOffset: String(base) }));
      },
    };
  },
});

export const natsDouble = (side: Broker) => ({
  connect: () => natsConnection(side),
  jetstream: ({ publish }: { readonly publish: JetStreamPublisher['publish'] }) => ({ publish }),
  headers: () => new Map<string, string>(),
});

async function natsConnection(side: Broker): Promise<NatsConnection & JetStreamPublisher> {
  side.connections += 1;
  if (side.fault === 'denied') throw error('AuthorizationError');
  if (side.fault === 'away') throw error('ConnectionError');
  let closed = false;
  return {
    isClosed: () => closed,
    close: async () => {
      closed = true;
    },
    publish: async (_, payload, options) => {
      const { msgID: id, headers } = options as { msgID: string; headers: Map<string, string> };
      if (side.fault === 'silent') return new Promise<never>(() => {});
      if (side.fault === 'missing') throw error('JetStreamNotEnabled');
      if (side.fault !== undefined) {
        closed = true;
        throw error(side.fault === 'away' ? 'ClosedConnectionError' : 'PermissionViolationError');
      }
      if (payload.byteLength > MIB) throw error('InvalidArgumentError');
      const duplicate = side.messages.some((one) => one.id === id);
      const body = Buffer.from(payload).toString();
      const decoded = [...headers].map(([name, value]) => [name, decodeURIComponent(value)]);
      if (!duplicate) side.messages.push({ body, id, headers: Object.fromEntries(decoded) });
      return { stream: 'ORDERS', seq: side.messages.length, duplicate };
    },
  };
}

/** As RabbitMQ: a fault of the exchange closes the channel, and a message without a queue is returned and then confirmed. */
export const rabbitDouble = (side: Broker) => async (): Promise<RabbitConnection> => {
  side.connections += 1;
  if (side.fault === 'away') throw error('Error', { code: 'ECONNREFUSED' });
  const connection = new EventEmitter();
  return Object.assign(connection, {
    createConfirmChannel: async () => rabbitChannel(side, connection),
    close: async () => {},
  });
};

function rabbitChannel(side: Broker, connection: EventEmitter): RabbitChannel {
  const channel = new EventEmitter();
  let isOpen = true;
  const closeWith = (code: number, message: string) => {
    if (!isOpen) return;
    isOpen = false;
    channel.emit('error', Object.assign(new Error(message), { code }));
    channel.emit('close');
  };
  const publish: RabbitChannel['publish'] = (_, __, content, options, confirmed) => {
    if (!isOpen) throw error('IllegalOperationError');
    const { messageId: id, headers } = options as { messageId: string; headers: Record<string, string> };
    setImmediate(() => {
      if (side.fault === 'silent') return;
      if (side.fault === 'missing') closeWith(404, "NOT_FOUND - no exchange 'contract'");
      if (side.fault === 'denied') closeWith(403, 'ACCESS_REFUSED - write access');
      if (content.length > MIB)
        closeWith(406, 'PRECONDITION_FAILED - message size is larger than configured max size');
      if (side.fault === 'away') {
        isOpen = false;
        connection.emit('error', error('Error', { code: 'ECONNRESET' }));
        connection.emit('close');
      }
      if (!isOpen) return confirmed(new Error('channel closed'));
      if (content.includes('unroutable')) channel.emit('return', { properties: { messageId: id } });
      else side.messages.push({ body: content.toString(), id, headers });
      confirmed(null);
    });
    return true;
  };
  return Object.assign(channel, { publish }) as unknown as RabbitChannel;
}
