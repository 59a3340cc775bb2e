import { randomUUID } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import {
  CreateEventBusCommand,
  DeleteEventBusCommand,
  DeleteRuleCommand,
  DisableRuleCommand,
  EnableRuleCommand,
  EventBridgeClient,
  PutRuleCommand,
  PutTargetsCommand,
  RemoveTargetsCommand,
} from '@aws-sdk/client-eventbridge';
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  type Message,
  PurgeQueueCommand,
  ReceiveMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { DeleteParameterCommand, PutParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import type { SQSEvent } from 'aws-lambda';
import { eventBridgeBus } from '../../../lambdas/runtime/bus/eventbridge-bus.ts';
import { encodeRulePattern } from '../../../lambdas/runtime/bus/rule-pattern.ts';
import type { EventDraft } from '../../../lambdas/runtime/events/event.ts';
import { createOutbox, dynamoTable, type Envelope } from '../../../lambdas/runtime/index.ts';
import {
  type ConsumerEntry,
  consumerEntryName,
  type EntryEvent,
  type MailroomEntry,
  mailroomEntryName,
} from '../../../lambdas/runtime/operations/directory.ts';
import { mintEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/row-schema.ts';
import { producerConfig } from '../../../testing/index.ts';
import { createTable } from '../../support/aws.ts';

/** A consumer of a {@link handmadeMailroom}: a rule and queues, and no function that reads them. */
export interface SmallConsumer {
  readonly entry: ConsumerEntry;
  /** Creates its rule, as a deployment does. */
  subscribe(): Promise<void>;
  disableRule(): Promise<void>;
  enableRule(): Promise<void>;
  /** Declares its subscriptions again: events until a minute from now may not be meant for it. */
  declareAgain(): Promise<void>;
  purge(): Promise<void>;
  /** Takes what its queue holds, as Lambda would hand it over. */
  take(): Promise<SQSEvent>;
}

/** The source of its events. */
export const SMALL_SOURCE = 'orders';

/**
 * A Mailroom of a test's own, made by hand: a table, a bus, and consumers without functions. It is in its own region, so
 * that no other test at this endpoint finds it or receives from its queues.
 *
 * @param subscriptions - the event types that its consumers see, or their subscriptions
 * @param joined - the bus that it joins, and the service of its consumers @default its own bus, and each consumer its own service
 * @param shards - of its outbox
 */
export async function handmadeMailroom(
  endpoint: string,
  region: string,
  names: readonly string[],
  subscriptions: readonly (string | EntryEvent)[],
  joined?: { readonly busName: string; readonly service: string },
  shards = 2,
) {
  const settings = { endpoint, region, credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };
  const dynamo = new DynamoDBClient(settings);
  const bridge = new EventBridgeClient(settings);
  const ssm = new SSMClient(settings);
  const tableName = `small-${randomUUID()}`;
  const busName = joined?.busName ?? `small-bus-${randomUUID()}`;
  await createTable(dynamo, tableName);
  if (joined === undefined) await bridge.send(new CreateEventBusCommand({ Name: busName }));
  const table = dynamoTable({ client: dynamo, tableName });
  const bus = eventBridgeBus({ client: bridge, busName });
  const config = producerConfig({ service: joined?.service ?? SMALL_SOURCE, tableName, shards });
  const outbox = createOutbox({ config, table });

  const mailroom: MailroomEntry = {
    stack: `mailroom-${tableName}`,
    table: tableName,
    bus: busName,
    shards: config.shards,
    streamFunction: 'none',
    sweepFunction: 'none',
    failureQueue: `${endpoint}/000000000000/none`,
  };
  const entered: string[] = [];
  await enter(mailroomEntryName(tableName), mailroom);

  async function enter(Name: string, entry: object): Promise<void> {
    await ssm.send(new PutParameterCommand({ Name, Type: 'String', Value: JSON.stringify(entry) }));
    entered.push(Name);
  }

  async function consumer(name: string): Promise<SmallConsumer> {
    const sqs = new SQSClient({ ...settings, useQueueUrlAsEndpoint: false });
    const queueOf = async (kind: string): Promise<string> => {
      const made = await sqs.send(new CreateQueueCommand({ QueueName: `${name}-${kind}-${randomUUID()}` }));
      return made.QueueUrl ?? '';
    };
    const rule = joined === undefined ? `${name}-rule` : `${name}-rule-of-${joined.service}`;
    const entry: ConsumerEntry = {
      stack: mailroom.stack,
      name,
      service: joined?.service ?? name,
      events: subscriptions.map((one) =>
        typeof one === 'string' ? { source: SMALL_SOURCE, type: one } : one,
      ),
      rule: `${busName}|${rule}`,
      queue: await queueOf('queue'),
      deadLetterQueue: await queueOf('dead'),
      undeliveredQueue: await queueOf('undelivered'),
      function: 'none',
      maxAttempts: 5,
      inboxRetentionDays: 35,
    };
    const QueueUrl = entry.queue;
    const { Attributes } = await sqs.send(
      new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] }),
    );
    const subscribe = async (): Promise<void> => {
      const EventPattern = JSON.stringify(encodeRulePattern(entry.events));
      await bridge.send(new PutRuleCommand({ EventBusName: busName, Name: rule, EventPattern }));
      const Targets = [{ Id: 'queue', Arn: Attributes?.QueueArn }];
      await bridge.send(new PutTargetsCommand({ EventBusName: busName, Rule: rule, Targets }));
    };
    await subscribe();
    await enter(consumerEntryName(tableName, name), entry);
    const named = { EventBusName: busName, Name: rule };
    return {
      entry,
      subscribe,
      disableRule: async () => {
        await bridge.send(new DisableRuleCommand(named));
      },
      enableRule: async () => {
        await bridge.send(new EnableRuleCommand(named));
      },
      declareAgain: async () => {
        const Name = consumerEntryName(tableName, name);
        for (const events of [[], entry.events]) {
          const Value = JSON.stringify({ ...entry, events });
          await ssm.send(new PutParameterCommand({ Name, Type: 'String', Value, Overwrite: true }));
        }
      },
      purge: async () => {
        await sqs.send(new PurgeQueueCommand({ QueueUrl }));
      },
      take: async () => {
        const taken: Message[] = [];
        for (;;) {
          const { Messages = [] } = await sqs.send(
            new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10, VisibilityTimeout: 60 }),
          );
          if (Messages.length === 0) return asEvent(taken);
          taken.push(...Messages);
          for (const { ReceiptHandle } of Messages)
            await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
        }
      },
    };
  }

  const consumers = await Promise.all(names.map(consumer));
  return {
    stack: mailroom.stack,
    table,
    tableName,
    busName,
    config,
    consumers,
    /** Takes it out of the directory, so that it is not found any more. */
    remove: async (): Promise<void> => {
      for (const Name of entered) await ssm.send(new DeleteParameterCommand({ Name }));
    },
    deleteBus: async (): Promise<void> => {
      for (const name of names) {
        const rule = { EventBusName: busName, Rule: `${name}-rule` };
        await bridge.send(new RemoveTargetsCommand({ ...rule, Ids: ['queue'] }));
        await bridge.send(new DeleteRuleCommand({ EventBusName: busName, Name: rule.Rule }));
      }
      await bridge.send(new DeleteEventBusCommand({ Name: busName }));
    },
    /** Creates the bus and its rules again, as the deployment of its stacks does. */
    deployBus: async (): Promise<void> => {
      await bridge.send(new CreateEventBusCommand({ Name: busName }));
      for (const { subscribe } of consumers) await subscribe();
    },
    /** Writes the row of an event that was published a while ago, and that no consumer received. */
    publishedAgo: async (agoMs: number, type: string): Promise<string> => {
      const publishedAt = Date.now() - agoMs;
      const eventId = mintEventId(publishedAt, config.shards);
      const envelope = JSON.stringify({ eventId, type, aggregateId: 'old', data: {} });
      const row = { schema: SCHEMA, status: 'PUBLISHED', source: SMALL_SOURCE, type, envelope, publishedAt };
      await table.write({ Put: { Item: { ...outboxKeyOf(eventId), ...row } } });
      return eventId;
    },
    /** Commits events, hands them to the bus and marks them published, as the relay does. */
    publish: async (...drafts: readonly EventDraft[]): Promise<readonly Envelope[]> => {
      const envelopes = await outbox.commit({ events: drafts });
      const entries = envelopes.map((envelope) => ({
        source: SMALL_SOURCE,
        detailType: envelope.type,
        detail: JSON.stringify(envelope),
      }));
      await bus.put(entries, 10_000);
      const publishedAt = Date.now();
      for (const { eventId } of envelopes) {
        const set = { status: 'PUBLISHED', publishedAt };
        await table.updateEach([{ key: outboxKeyOf(eventId), set, when: { status: 'PENDING' } }]);
      }
      return envelopes;
    },
  };
}

function asEvent(messages: readonly Message[]): SQSEvent {
  const Records = messages.map(({ MessageId = '', ReceiptHandle = '', Body = '' }) => ({
    messageId: MessageId,
    receiptHandle: ReceiptHandle,
    body: Body,
    attributes: {
      ApproximateReceiveCount: '1',
      SentTimestamp: String(Date.now()),
      SenderId: 'test',
      ApproximateFirstReceiveTimestamp: String(Date.now()),
    },
    messageAttributes: {},
    md5OfBody: '',
    eventSource: 'aws:sqs',
    eventSourceARN: '',
    awsRegion: '',
  }));
  return { Records };
}
