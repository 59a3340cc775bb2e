import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { expect, test } from 'vitest';
import { bookInvocation, bookSend } from '../../../bench/alternatives/queue-delivery.ts';
import { fixedRandom, jumpingClock } from '../../../bench/alternatives/workload.ts';
import { MINUTES_PER_MONTH } from '../../../bench/assumptions.ts';
import { createMeteredAws } from '../../../bench/aws/metered-aws.ts';
import { lambdaMs, total, usageOf, usdPerMillion } from '../../../bench/cost/measure.ts';
import { RELAY_CONFIG, TABLE } from '../../../bench/cost/sweep-minute.ts';
import { eventBridgeBus } from '../../../lambdas/runtime/bus/eventbridge-bus.ts';
import { HEARTBEAT } from '../../../lambdas/runtime/events/heartbeat-event.ts';
import type { ConsumerEntry, MailroomEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { createHeartbeatHandler } from '../../../lambdas/runtime/operations/heartbeat/heartbeat-handler.ts';
import { createRelayStream } from '../../../lambdas/runtime/relay/relay-stream.ts';
import { createConsumer } from '../../../lambdas/runtime/sources/sqs/consumer.ts';
import { dynamoTable } from '../../../lambdas/runtime/store/dynamo/dynamo-table.ts';
import { OUTBOX_PREFIX } from '../../../lambdas/runtime/store/outbox-partition.ts';
import {
  consumerConfig,
  eventBridgeMessage,
  lambdaContext,
  memoryQueue,
  memoryTelemetry,
  producerConfig,
} from '../../../testing/index.ts';
import { costPage } from './cost-page.ts';

const EVERY_MINUTES = 5;
const EVERY_MS = EVERY_MINUTES * 60_000;

/** A custom metric and an alarm on one metric for a month (CloudWatch pricing, US dollars). */
const [METRIC, ALARM] = [0.3, 0.1];

/** The price of heartbeats for a month, without metric and alarms, in US dollars. */
async function usdPerMonth(consumerCount: number): Promise<number> {
  const aws = createMeteredAws([{ name: TABLE, keys: ['PK', 'SK'] }], { clock: jumpingClock() });
  const { clock } = aws;
  const table = dynamoTable({ client: new DynamoDBClient(aws.client), tableName: TABLE });
  const bus = eventBridgeBus({ client: new EventBridgeClient(aws.client), busName: RELAY_CONFIG.busName });
  const parts = { table, clock, random: fixedRandom(), telemetry: memoryTelemetry() };
  const names = Array.from({ length: consumerCount }, (_, n) => `consumer-${n}`);
  const entries = names.map((name) => ({ name, events: [HEARTBEAT] }) as unknown as ConsumerEntry);
  const beat = createHeartbeatHandler({
    ...parts,
    config: { ...producerConfig({ service: HEARTBEAT.source, tableName: TABLE }), everyMs: EVERY_MS },
    directory: async () => ({ mailroom: {} as MailroomEntry, consumers: entries }),
  });
  const relay = createRelayStream({ ...parts, bus, config: RELAY_CONFIG });
  const consumers = names.map((name) => {
    const config = consumerConfig({ consumer: name, tableName: TABLE });
    const queue = memoryQueue({ clock, visibilityTimeoutMs: config.visibilityTimeoutMs });
    return { queue, handle: createConsumer({ ...parts, config, queue, handlers: [] }) };
  });

  async function pass(): Promise<void> {
    expect(await beat()).toMatchObject({ late: [] });
    await relay({
      Records: aws
        .takeInserts(TABLE)
        .filter(({ dynamodb }) => dynamodb?.Keys?.PK?.S?.startsWith(OUTBOX_PREFIX)),
    });
    for (const _function of [beat, relay]) aws.book('lambda', 'Invoke', 1);
    const [{ Source = '', DetailType = '', Detail = '' } = {}] = aws.takePublished();
    const body = eventBridgeMessage({
      source: Source,
      detailType: DetailType,
      detail: Detail,
      id: 'published',
      publishedAt: clock.now(),
    });
    for (const { queue, handle } of consumers) {
      bookSend(aws, body);
      queue.send(body);
      await queue.deliver(handle, 10, lambdaContext({ clock }));
      bookInvocation(aws, [body], 1);
    }
  }

  await pass(); // the first one has none to judge
  await clock.sleep(EVERY_MS);
  const before = aws.requests().length;
  await pass();
  const usage = usageOf(aws.requests().slice(before));
  const perMillion = total(usdPerMillion(usage, lambdaMs(usage, 1 + consumerCount)));
  return (perMillion * MINUTES_PER_MONTH) / EVERY_MINUTES / 1e6;
}

test('docs/cost.md states what heartbeats cost', async () => {
  const [one, two] = [await usdPerMonth(1), await usdPerMonth(2)];
  expect(two).toBeGreaterThan(one);
  expect(costPage().replaceAll('\n', ' ')).toContain(
    `A heartbeat every ${EVERY_MINUTES} minutes, which is optional, costs ${one.toFixed(2)} USD a month with one consumer and ` +
      `${(two - one).toFixed(2)} for each further one, and ${(METRIC + 2 * ALARM).toFixed(2)} for its metric and two alarms.`,
  );
});
