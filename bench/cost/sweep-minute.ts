import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { eventBridgeBus } from '../../lambdas/runtime/bus/eventbridge-bus.ts';
import { createDeadLetterWatch } from '../../lambdas/runtime/operations/dead-letter-watch.ts';
import type { Directory } from '../../lambdas/runtime/operations/directory.ts';
import { minutesToSweep } from '../../lambdas/runtime/relay/minutes-to-sweep.ts';
import { createRelaySweep } from '../../lambdas/runtime/relay/relay-sweep.ts';
import { dynamoTable } from '../../lambdas/runtime/store/dynamo/dynamo-table.ts';
import { mintEventId, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { SWEEP_STATE_KEY } from '../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import { relayConfig } from '../../testing/default-config.ts';
import { memoryTelemetry } from '../../testing/index.ts';
import { fixedRandom } from '../alternatives/workload.ts';
import type { MeteredAws } from '../aws/metered-aws.ts';

/** The Mailroom table; the services store their rows in it. */
export const TABLE = 'Mailroom';

/** Default settings of the relay, as the constructs pass them. */
export const RELAY_CONFIG = relayConfig({ tableName: TABLE });

/** The number of consumers that the dead-letter watch finds. */
const WATCHED_CONSUMERS = 3;

/** The timeout of one invocation of the sweep in milliseconds. */
export const SWEEP_TIMEOUT_MS = 55_000;

/**
 * Runs the sweep's handler once, as it runs every minute: over the six minutes that it reads in steady state, in which every row
 * is PUBLISHED, and over the empty dead-letter queues. Recorded as `standing`.
 *
 * @param row - a PUBLISHED row; the others have its size
 * @param config - the relay's settings @default those of the constructs
 */
export async function sweepMinute(
  aws: MeteredAws,
  row: Item,
  eventsPerSecond: number,
  config = RELAY_CONFIG,
): Promise<void> {
  const { clock } = aws;
  const parts = { clock, random: fixedRandom(), telemetry: memoryTelemetry() };
  const sweptTo = clock.now() - MINUTE_MS;
  aws.seed(TABLE, [{ ...SWEEP_STATE_KEY, schema: SCHEMA, sweptTo, shards: RELAY_CONFIG.shards }]);
  for (const minute of minutesToSweep(sweptTo, clock.now())) {
    aws.seed(TABLE, rowsOf(Date.parse(`${minute}Z`), row, eventsPerSecond));
  }
  const table = dynamoTable({ client: new DynamoDBClient(aws.client), tableName: TABLE });
  const bus = eventBridgeBus({ client: new EventBridgeClient(aws.client), busName: RELAY_CONFIG.busName });
  const watch = createDeadLetterWatch({
    table,
    clock,
    directory: async () => DIRECTORY,
    queues: emptyQueues(aws),
  });
  const sweep = createRelaySweep({ ...parts, config, table, bus, watch });
  await aws.during('standing', async () => {
    aws.book('lambda', 'Invoke', 1);
    const report = await sweep({}, { getRemainingTimeInMillis: () => SWEEP_TIMEOUT_MS });
    if (!('complete' in report) || !report.complete) throw new Error('The pass did not come to its end');
  });
}

/** The rows of one minute, evenly over its time, in random shards like the ids of events. */
function* rowsOf(minute: number, row: Item, eventsPerSecond: number): Generator<Item> {
  const random = fixedRandom();
  const count = (eventsPerSecond * MINUTE_MS) / 1_000;
  for (let index = 0; index < count; index += 1) {
    const eventId = mintEventId(
      minute + Math.floor((index * MINUTE_MS) / count),
      RELAY_CONFIG.shards,
      random,
    );
    yield { ...row, ...outboxKeyOf(eventId) };
  }
}

/** Empty queues. Each read is a request. */
function emptyQueues(aws: MeteredAws) {
  return {
    depth: async () => {
      aws.book('sqs', 'GetQueueAttributes', 1);
      return { arn: 'queue', waiting: 0, inFlight: 0, retentionMs: 0 };
    },
    receive: async () => [],
  };
}

/** The part of a directory that the watch reads. */
const DIRECTORY = {
  mailroom: { failureQueue: 'failures' },
  consumers: Array.from({ length: WATCHED_CONSUMERS }, (_, n) => ({
    name: `consumer-${n + 1}`,
    deadLetterQueue: 'letters',
    undeliveredQueue: 'undelivered',
  })),
} as unknown as Directory;
