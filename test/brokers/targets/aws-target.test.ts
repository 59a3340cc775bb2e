import { randomUUID } from 'node:crypto';
import { describe, inject } from 'vitest';
import type { Arrived } from '../clients/arrived.ts';
import type { Places } from '../places/places.ts';
import { awsClients } from './aws-clients.ts';
import { testDelivery } from './delivery-tests.ts';
import type { TargetPlace } from './target-of.ts';

type AwsPlaces = Pick<Places, 'create' | 'placeOf' | 'arrived'>;

const endpoint = inject('endpoint');
const { sqs, sns, kinesis } = awsClients(endpoint);

const arrivedOf = (body = '', key = ''): Arrived => ({ body, headers: {}, key });

/** Makes places whose addresses are those of what was created, and whose messages are collected in queues. */
function queued(create: (name: string, queueUrl: string) => Promise<TargetPlace>, suffix = ''): AwsPlaces {
  const urls = new Map<string, string>();
  const made = new Map<string, TargetPlace>();
  const taken = new Map<string, Arrived[]>();
  return {
    create: async (name) => {
      const QueueName = `${randomUUID()}${suffix}`;
      const Attributes = suffix === '' ? {} : { FifoQueue: 'true' };
      const { QueueUrl = '' } = await sqs.createQueue({ QueueName, Attributes });
      urls.set(name, QueueUrl);
      made.set(name, await create(QueueName, QueueUrl));
    },
    placeOf: (name) => made.get(name) as TargetPlace,
    arrived: async (name) => {
      const QueueUrl = urls.get(name);
      const all = taken.get(name) ?? [];
      taken.set(name, all);
      for (;;) {
        const { Messages = [] } = await sqs.receiveMessage({ QueueUrl, MaxNumberOfMessages: 10 });
        if (Messages.length === 0) return all;
        for (const { Body, ReceiptHandle } of Messages) {
          all.push(arrivedOf(Body));
          await sqs.deleteMessage({ QueueUrl, ReceiptHandle });
        }
      }
    },
  };
}

const queues = (suffix = '') => queued(async (_, queueUrl) => ({ kind: 'sqs', endpoint, queueUrl }), suffix);

const topics = () =>
  queued(async (Name, QueueUrl) => {
    const { TopicArn: topicArn = '' } = await sns.createTopic({ Name });
    const { Attributes } = await sqs.getQueueAttributes({ QueueUrl, AttributeNames: ['QueueArn'] });
    const raw = { RawMessageDelivery: 'true' };
    const Endpoint = Attributes?.QueueArn;
    await sns.subscribe({ TopicArn: topicArn, Protocol: 'sqs', Endpoint, Attributes: raw });
    return { kind: 'sns', endpoint, topicArn };
  });

function streams(): AwsPlaces {
  const nameOf = (name: string) => `brokers-${name}`;
  const arnOf = (name: string) => `arn:aws:kinesis:us-east-1:000000000000:stream/${nameOf(name)}`;
  return {
    create: async (name) => {
      await kinesis.createStream({ StreamName: nameOf(name), ShardCount: 1 });
    },
    placeOf: (name) => ({ kind: 'kinesis', endpoint, streamName: arnOf(name) }),
    arrived: async (name) => {
      const StreamName = nameOf(name);
      const { Shards: [{ ShardId } = {}] = [] } = await kinesis.listShards({ StreamName });
      const from = { StreamName, ShardId, ShardIteratorType: 'TRIM_HORIZON' } as const;
      const { ShardIterator } = await kinesis.getShardIterator(from);
      const { Records = [] } = await kinesis.getRecords({ ShardIterator });
      return Records.map(({ Data, PartitionKey }) =>
        arrivedOf(Buffer.from(Data ?? []).toString(), PartitionKey),
      );
    },
  };
}

/** Each target on a local AWS, and how often an event is there that was sent twice. */
const TARGETS = [
  ['SQS', queues(), 2],
  ['SQS FIFO', queues('.fifo'), 1],
  ['SNS', topics(), 2],
  ['Kinesis', streams(), 2],
] as const;

describe.each(TARGETS)('a bridge to %s', (name, places, timesAfterCrash) => {
  testDelivery(name, () => places, timesAfterCrash);
});
