import {
  DeleteRuleCommand,
  EventBridgeClient,
  PutRuleCommand,
  PutTargetsCommand,
  RemoveTargetsCommand,
} from '@aws-sdk/client-eventbridge';
import {
  CreateEventSourceMappingCommand,
  CreateFunctionCommand,
  DeleteEventSourceMappingCommand,
  DeleteFunctionCommand,
  waitUntilFunctionActiveV2,
} from '@aws-sdk/client-lambda';
import {
  CreateQueueCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  SendMessageCommand,
} from '@aws-sdk/client-sqs';
import { required } from '../../demo/readings.ts';
import { asDelivered } from '../../demo/shop.ts';
import { consumerSettings } from '../../lambdas/runtime/base/consumer-config.ts';
import { type Envelope, type EventOrder, latest, strict } from '../../lambdas/runtime/index.ts';
import { RUNTIME } from '../../lib/functions/service-function.ts';
import { consumerConfig } from '../../testing/index.ts';
import { bundleFunction } from '../../tools/pack/function-bundle.ts';
import { zipOf } from '../attack/engine-requests.ts';
import { BillDue } from './bills.handler.ts';
import type { Cleanup } from './cleanup.ts';
import { preload } from './deployed-functions.ts';
import type { OrderSystem } from './order-system.ts';
import { AccountChanged } from './ordered.handler.ts';
import { CONSUMER_TIMINGS } from './timings.ts';

/** The consumers that the order system does not have. */
export type ExtraConsumer = OrderedConsumer | 'collector';

/** Two of them are ordered. */
export type OrderedConsumer = 'ledger' | 'profile';

/** Each of them: its code, its event, its order, and whether it receives them from the bus. */
const EXTRA_CONSUMERS: Readonly<Record<ExtraConsumer, ExtraSettings>> = {
  ledger: { entry: 'ordered', event: AccountChanged, order: strict() },
  profile: { entry: 'ordered', event: AccountChanged, order: latest() },
  collector: { entry: 'bills', event: BillDue, isSubscribed: true },
};

interface ExtraSettings {
  readonly entry: 'ordered' | 'bills';
  readonly event: { readonly source: string; readonly type: string };
  /** @default none */
  readonly order?: EventOrder;
  /** @default false: only the scenario sends to its queue */
  readonly isSubscribed?: boolean;
}

/** SQS's maximum: a message that waits, or whose worker is killed, is received often. */
const RECEIVES_MAX = 1_000;

/** A consumer with its queue. */
export interface DeployedConsumer {
  /** Sends messages as the bus does, in this order; each becomes visible after its delay. */
  send(messages: readonly { readonly event: Envelope; readonly delayS: number }[]): Promise<void>;
  /** How many messages its queue and its dead-letter queue hold. */
  depths(): Promise<{ readonly queued: number; readonly dead: number }>;
}

/** Deploys a consumer beside the order system, on its table. Its calls come through the fault proxy. */
export async function deployExtra(
  { lambda, sqs, proxy, tableName, outputs, endpoint }: OrderSystem,
  consumer: ExtraConsumer,
  { runId, cleanup }: { readonly runId: string; readonly cleanup: Cleanup },
): Promise<DeployedConsumer> {
  const FunctionName = `${runId}-${consumer}`;
  const {
    entry,
    event: { source, type },
    order,
    isSubscribed,
  } = EXTRA_CONSUMERS[consumer];
  const { visibilityTimeoutS, timeoutS, leaseMs } = CONSUMER_TIMINGS;
  const queue = async (suffix: string, attributes: Record<string, string>) => {
    const { QueueUrl = '' } = await sqs.send(
      new CreateQueueCommand({ QueueName: `${FunctionName}${suffix}`, Attributes: attributes }),
    );
    cleanup.add(async () => void (await sqs.send(new DeleteQueueCommand({ QueueUrl }))));
    return { url: QueueUrl, arn: (await attributesOf(QueueUrl)).QueueArn };
  };
  const attributesOf = async (QueueUrl: string): Promise<Record<string, string>> => {
    const command = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] });
    return (await sqs.send(command)).Attributes ?? {};
  };
  const depth = async (QueueUrl: string): Promise<number> => {
    const counts = Object.entries(await attributesOf(QueueUrl));
    return counts.reduce((sum, [name, n]) => sum + (/^ApproximateNumberOf/.test(name) ? Number(n) : 0), 0);
  };

  const dead = await queue('-dead', {});
  const { url, arn } = await queue('', {
    VisibilityTimeout: String(visibilityTimeoutS),
    RedrivePolicy: JSON.stringify({ deadLetterTargetArn: dead.arn, maxReceiveCount: RECEIVES_MAX }),
  });
  const config = consumerConfig({
    service: consumer,
    publishes: [],
    tableName,
    consumer,
    queueUrl: url,
    leaseMs,
    visibilityTimeoutMs: visibilityTimeoutS * 1_000,
    order,
    maxReceives: RECEIVES_MAX,
  });
  const { code } = await bundleFunction({ name: consumer, entry: `test/chaos/${entry}.handler.ts` });
  await lambda.send(
    new CreateFunctionCommand({
      FunctionName,
      Runtime: RUNTIME.name as 'nodejs24.x',
      Handler: 'index.handler',
      Role: 'arn:aws:iam::000000000000:role/none',
      Timeout: timeoutS,
      Environment: {
        Variables: { ...consumerSettings.encode(config), NODE_OPTIONS: preload(proxy.urlFor(consumer)) },
      },
      Code: { ZipFile: zipOf('index.mjs', Buffer.from(code).toString()) },
    }),
  );
  cleanup.add(async () => void (await lambda.send(new DeleteFunctionCommand({ FunctionName }))));
  await waitUntilFunctionActiveV2({ client: lambda, maxWaitTime: 60 }, { FunctionName });
  const { UUID } = await lambda.send(
    new CreateEventSourceMappingCommand({
      EventSourceArn: arn,
      FunctionName,
      BatchSize: 10,
      FunctionResponseTypes: ['ReportBatchItemFailures'],
    }),
  );
  cleanup.add(async () => void (await lambda.send(new DeleteEventSourceMappingCommand({ UUID }))));
  if (isSubscribed) {
    const events = new EventBridgeClient({ endpoint });
    const rule = { EventBusName: required(outputs, 'EventBusName') };
    const EventPattern = JSON.stringify({ source: [source], 'detail-type': [type] });
    await events.send(new PutRuleCommand({ ...rule, Name: FunctionName, EventPattern }));
    cleanup.add(async () => void (await events.send(new DeleteRuleCommand({ ...rule, Name: FunctionName }))));
    const targets = { ...rule, Rule: FunctionName };
    await events.send(new PutTargetsCommand({ ...targets, Targets: [{ Id: consumer, Arn: arn }] }));
    cleanup.add(
      async () => void (await events.send(new RemoveTargetsCommand({ ...targets, Ids: [consumer] }))),
    );
  }

  return {
    send: async (messages) => {
      for (const { event, delayS: DelaySeconds } of messages) {
        const MessageBody = asDelivered(source, event);
        await sqs.send(new SendMessageCommand({ QueueUrl: url, MessageBody, DelaySeconds }));
      }
    },
    depths: async () => ({ queued: await depth(url), dead: await depth(dead.url) }),
  };
}
