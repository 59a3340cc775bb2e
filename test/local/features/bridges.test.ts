import { randomUUID } from 'node:crypto';
import {
  CreateStreamCommand,
  DeleteStreamCommand,
  DescribeStreamSummaryCommand,
  GetRecordsCommand,
  GetShardIteratorCommand,
  KinesisClient,
  ListShardsCommand,
} from '@aws-sdk/client-kinesis';
import {
  DeleteMessageBatchCommand,
  type Message,
  ReceiveMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { expect, test } from 'vitest';
import type { Envelope } from '../../../lambdas/runtime/index.ts';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { eventually } from '../support/eventually.ts';
import { invoke, output, read } from '../support/features.ts';
import { mailroom } from '../support/mailroom.ts';

const queues = new SQSClient({});
const kinesis = new KinesisClient({});
const BRIDGES = ['to-queue', 'to-topic', 'to-stream'] as const;

const book = async (booking: object) => (await invoke(output('BookFunction'), booking)) as string[];
const rowOf = (bridge: (typeof BRIDGES)[number], eventId = '') => read(inboxKey(bridge, eventId));

/** Everything that a queue has, in the order of its delivery; it is removed. */
async function drained(url: string): Promise<Message[]> {
  const all: Message[] = [];
  for (;;) {
    const { Messages = [] } = await queues.send(
      new ReceiveMessageCommand({ QueueUrl: url, MaxNumberOfMessages: 10, MessageAttributeNames: ['All'] }),
    );
    if (Messages.length === 0) return all;
    all.push(...Messages);
    const Entries = Messages.map(({ MessageId, ReceiptHandle }) => ({ Id: MessageId, ReceiptHandle }));
    await queues.send(new DeleteMessageBatchCommand({ QueueUrl: url, Entries }));
  }
}

async function records(): Promise<{ readonly key: string | undefined; readonly body: string }[]> {
  const StreamName = output('StreamName');
  const { Shards = [] } = await kinesis.send(new ListShardsCommand({ StreamName }));
  const [{ ShardId } = {}] = Shards;
  const { ShardIterator } = await kinesis.send(
    new GetShardIteratorCommand({ StreamName, ShardId, ShardIteratorType: 'TRIM_HORIZON' }),
  );
  const { Records = [] } = await kinesis.send(new GetRecordsCommand({ ShardIterator }));
  return Records.map(({ PartitionKey: key, Data }) => ({ key, body: Buffer.from(Data ?? []).toString() }));
}

const processed = (eventIds: readonly string[], bridges: readonly (typeof BRIDGES)[number][] = BRIDGES) =>
  eventually(async () => {
    for (const bridge of bridges)
      for (const eventId of eventIds)
        expect(await rowOf(bridge, eventId), bridge).toMatchObject({ status: 'PROCESSED' });
  });

const sequencesOf = (bodies: readonly string[], account: string) =>
  bodies
    .map((body) => JSON.parse(body) as Envelope)
    .filter(({ aggregateId }) => aggregateId === account)
    .map(({ sequence }) => sequence);

test("each target receives the envelopes as they were written, an aggregate's in their order, and why names their place", async () => {
  const account = randomUUID();
  const eventIds = await book({ account, count: 4 });
  await processed(eventIds);

  const fifo = await drained(output('PartnerUrl'));
  expect(
    sequencesOf(
      fifo.map(({ Body = '' }) => Body),
      account,
    ),
  ).toEqual([1, 2, 3, 4]);
  expect(fifo[0]?.MessageAttributes).toMatchObject({
    eventId: { StringValue: eventIds[0] },
    type: { StringValue: 'Booked' },
    source: { StringValue: 'ledger' },
  });
  const { envelope } = (await read(outboxKeyOf(eventIds[0] ?? ''))) ?? {};
  // Like EventBridge, the local AWS may write the detail with other white space; a bridge does not.
  expect(JSON.parse(fifo[0]?.Body ?? '')).toEqual(JSON.parse(String(envelope)));

  const notifications = await drained(output('SubscribedUrl'));
  const sent = notifications.map(({ Body = '' }) => (JSON.parse(Body) as { Message: string }).Message);
  expect(sequencesOf(sent, account).sort()).toEqual([1, 2, 3, 4]);

  const inStream = await records();
  expect(
    sequencesOf(
      inStream.map(({ body }) => body),
      account,
    ),
  ).toEqual([1, 2, 3, 4]);
  expect(new Set(inStream.map(({ key }) => key))).toEqual(new Set([account]));

  const why = unwrapped((await mailroom('why', eventIds[0] ?? '')).out);
  expect(why).toMatch(/to-queue: delivered to queue \S+\.fifo, message \S+, sequence \d+\./);
  expect(why).toMatch(/to-topic: delivered to topic \S+, message \S+\./);
  expect(why).toMatch(/to-stream: delivered to stream \S+, shard shardId-0+, sequence \d+\./);
});

test('a stream that does not exist is retried until it exists, and why names it', async () => {
  const StreamName = output('StreamName');
  await kinesis.send(new DeleteStreamCommand({ StreamName }));
  const account = randomUUID();
  const eventIds = await book({ account });
  await eventually(async () => {
    expect(await rowOf('to-stream', eventIds[0])).toMatchObject({
      lastError: expect.stringContaining(
        `stream ${StreamName} did not take the event (ResourceNotFoundException)`,
      ),
    });
  });
  expect(unwrapped((await mailroom('why', eventIds[0] ?? '')).out)).toContain(
    `stream ${StreamName} did not take`,
  );
  await kinesis.send(new CreateStreamCommand({ StreamName, ShardCount: 1 }));
  await eventually(async () => {
    const { StreamDescriptionSummary } = await kinesis.send(new DescribeStreamSummaryCommand({ StreamName }));
    expect(StreamDescriptionSummary?.StreamStatus).toBe('ACTIVE');
  });
  await processed(eventIds);
  expect(
    sequencesOf(
      (await records()).map(({ body }) => body),
      account,
    ),
  ).toEqual([1]);
});

test('an event above the limit of one target is rejected there, and reaches the others', async () => {
  const [eventId = ''] = await book({ account: randomUUID(), bytes: 300_000 });
  await eventually(async () => {
    expect(await rowOf('to-topic', eventId)).toMatchObject({
      status: 'REJECTED',
      reason: 'BRIDGE_REJECTED',
    });
  });
  await processed([eventId], ['to-queue', 'to-stream']);
  const why = await mailroom('why', eventId);
  expect(why.code).toBe(1);
  expect(unwrapped(why.out)).toMatch(/topic \S+ did not take the event \(TOO_LARGE\): it has 30\d{4} bytes/);
});

test('status and describe show the target beside the bridge', async () => {
  expect((await mailroom('status', '--json')).json().consumers['to-stream']).toMatchObject({
    forwardsTo: `stream ${output('StreamName')}`,
  });
  expect(unwrapped((await mailroom('describe', 'to-queue')).out)).toMatch(
    /forwards to queue \S+\.fifo \(SQS\), an aggregate's events in order/,
  );
});
