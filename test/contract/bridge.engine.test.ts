import { randomUUID } from 'node:crypto';
import { Kinesis } from '@aws-sdk/client-kinesis';
import { SNS } from '@aws-sdk/client-sns';
import { SQS } from '@aws-sdk/client-sqs';
import { inject } from 'vitest';
import { kinesisTarget, snsTarget, sqsTarget } from '../../lambdas/runtime/bridge.ts';
import { clientSettings } from '../../lambdas/runtime/index.ts';
import { type Arrived, type BridgeSubject, describeBridge } from './bridge-contract.ts';
import { type Differences, differing, type Subject } from './cases.ts';

const endpoint = inject('endpoint');
const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
const settings = {
  ...clientSettings,
  region: 'us-east-1',
  ...(endpoint !== '' && { endpoint, credentials }),
};
const [sqs, sns, kinesis] = [new SQS(settings), new SNS(settings), new Kinesis(settings)];

/** What no test can do to AWS or to a local one. */
const UNBREAKABLE: Differences = differing('only doubles fail so', [
  'denied access is retried',
  'a target that cannot be reached is retried',
  'after a call without an answer, a reset opens another connection',
]);

/** Collects what a queue receives. */
function receiver(url: () => string): () => Promise<readonly Arrived[]> {
  const arrived: Arrived[] = [];
  return async () => {
    const { Messages = [] } = await sqs.receiveMessage({
      QueueUrl: url(),
      MaxNumberOfMessages: 10,
      MessageAttributeNames: ['All'],
      MessageSystemAttributeNames: ['MessageGroupId', 'MessageDeduplicationId'],
    });
    for (const { Body: body = '', Attributes, MessageAttributes = {}, ReceiptHandle } of Messages) {
      const headers = Object.entries(MessageAttributes).map(([name, { StringValue = '' }]) => [
        name,
        StringValue,
      ]);
      const { MessageGroupId: key, MessageDeduplicationId: id } = Attributes ?? {};
      arrived.push({ body, key, id, headers: Object.fromEntries(headers) });
      await sqs.deleteMessage({ QueueUrl: url(), ReceiptHandle });
    }
    return arrived;
  };
}

/** A target that can be deleted, and created again. */
async function existing(
  target: BridgeSubject['target'],
  arrived: BridgeSubject['arrived'],
  { create, remove }: { create(): Promise<unknown>; remove(): Promise<unknown> },
): Promise<Subject<BridgeSubject>> {
  await create();
  return {
    subject: {
      target,
      arrived,
      fault: async (fault) => void (await (fault === undefined ? create() : remove())),
    },
    remove: async () => void (await remove()),
  };
}

describeBridge(
  'forwarding to SQS, FIFO',
  async () => {
    const QueueName = `${randomUUID()}.fifo`;
    const create = () => sqs.createQueue({ QueueName, Attributes: { FifoQueue: 'true' } });
    const { QueueUrl = '' } = await create();
    const target = sqsTarget({ client: sqs, queueUrl: QueueUrl });
    return existing(
      target,
      receiver(() => QueueUrl),
      { create, remove: () => sqs.deleteQueue({ QueueUrl }) },
    );
  },
  UNBREAKABLE,
);

describeBridge(
  'forwarding to SNS',
  async () => {
    const Name = randomUUID();
    const { QueueUrl = '' } = await sqs.createQueue({ QueueName: Name });
    const { Attributes } = await sqs.getQueueAttributes({ QueueUrl, AttributeNames: ['QueueArn'] });
    const create = async () => {
      const { TopicArn = '' } = await sns.createTopic({ Name });
      const raw = { RawMessageDelivery: 'true' };
      await sns.subscribe({ TopicArn, Protocol: 'sqs', Endpoint: Attributes?.QueueArn, Attributes: raw });
      return TopicArn;
    };
    const TopicArn = await create();
    const target = snsTarget({ client: sns, topicArn: TopicArn });
    return existing(
      target,
      receiver(() => QueueUrl),
      { create, remove: () => sns.deleteTopic({ TopicArn }) },
    );
  },
  UNBREAKABLE,
);

describeBridge(
  'forwarding to Kinesis',
  async () => {
    const StreamName = randomUUID();
    const create = async () => {
      await kinesis.createStream({ StreamName, ShardCount: 1 });
      for (let is = ''; is !== 'ACTIVE'; )
        is =
          (await kinesis.describeStreamSummary({ StreamName })).StreamDescriptionSummary?.StreamStatus ?? '';
    };
    const arrived = async () => {
      const { Shards: [{ ShardId } = {}] = [] } = await kinesis.listShards({ StreamName });
      const from = { StreamName, ShardId, ShardIteratorType: 'TRIM_HORIZON' } as const;
      const { ShardIterator } = await kinesis.getShardIterator(from);
      const { Records = [] } = await kinesis.getRecords({ ShardIterator });
      return Records.map(({ Data, PartitionKey: key }) => ({
        body: Buffer.from(Data ?? []).toString(),
        key,
        headers: {},
      }));
    };
    const target = kinesisTarget({ client: kinesis, streamName: StreamName });
    return existing(target, arrived, { create, remove: () => kinesis.deleteStream({ StreamName }) });
  },
  UNBREAKABLE,
);
