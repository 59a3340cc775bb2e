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
import { asDelivered } from '../../demo/shop.ts';
import { consumerSettings } from '../../lambdas/runtime/base/config.ts';
import { type Envelope, type EventOrder, latest, strict } from '../../lambdas/runtime/index.ts';
import { RUNTIME } from '../../lib/service-function.ts';
import { consumerConfig } from '../../testing/index.ts';
import { bundleFunction } from '../../tools/pack/function-bundle.ts';
import { zipOf } from '../attack/engine-requests.ts';
import type { Cleanup } from './cleanup.ts';
import { preload } from './deployed-functions.ts';
import type { OrderSystem } from './order-system.ts';
import { AccountChanged } from './ordered.handler.ts';
import { CONSUMER_TIMINGS } from './timings.ts';

/** The ordered consumers, which the order system does not have. */
export type OrderedConsumer = 'ledger' | 'profile';

/** The order of each. */
const ORDERS: Readonly<Record<OrderedConsumer, EventOrder>> = { ledger: strict(), profile: latest() };

/** SQS's maximum: a message that waits, or whose worker is killed, is received often. */
const RECEIVES_MAX = 1_000;

/** A consumer with its queue, which only the scenario sends to. */
export interface DeployedConsumer {
  /** Sends messages as the bus does, in this order; each becomes visible after its delay. */
  send(messages: readonly { readonly event: Envelope; readonly delayS: number }[]): Promise<void>;
  /** How many messages its queue and its dead-letter queue hold. */
  depths(): Promise<{ readonly queued: number; readonly dead: number }>;
}

/** Deploys a consumer of {@link AccountChanged} beside the order system, on its table. Its calls come through the fault proxy. */
export async function deployOrdered(
  { lambda, sqs, proxy, tableName }: OrderSystem,
  consumer: OrderedConsumer,
  { runId, cleanup }: { readonly runId: string; readonly cleanup: Cleanup },
): Promise<DeployedConsumer> {
  const FunctionName = `${runId}-${consumer}`;
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
    order: ORDERS[consumer],
    maxReceives: RECEIVES_MAX,
  });
  const { code } = await bundleFunction({ name: consumer, entry: 'test/chaos/ordered.handler.ts' });
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

  return {
    send: async (messages) => {
      for (const { event, delayS: DelaySeconds } of messages) {
        const MessageBody = asDelivered(AccountChanged.source, event);
        await sqs.send(new SendMessageCommand({ QueueUrl: url, MessageBody, DelaySeconds }));
      }
    },
    depths: async () => ({ queued: await depth(url), dead: await depth(dead.url) }),
  };
}
