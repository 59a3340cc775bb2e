import type { ProducerConfig, RelayConfig } from '../lambdas/runtime/base/config.ts';
import type { ConsumerConfig } from '../lambdas/runtime/base/consumer-config.ts';
import { BORN_LEASE_MS } from '../lambdas/runtime/base/patience.ts';

/**
 * Default settings of a producer, as the constructs pass them, for a test that creates its own outbox. Name the `service`: the outbox
 * then refuses events of other services, and with `publishes`, all but those types, as in AWS (`NOT_DECLARED`).
 *
 * @example
 * ```ts
 * const table = memoryTable();
 * const outbox = createOutbox({ config: producerConfig({ service: 'orders' }), table });
 * ```
 */
export function producerConfig(settings: Partial<ProducerConfig> = {}): ProducerConfig {
  const publishes = settings.service === undefined ? 'any' : undefined;
  return {
    service: 'service',
    publishes,
    tableName: 'Mailroom',
    shards: 8,
    bornLeaseMs: BORN_LEASE_MS,
    ...settings,
  };
}

/**
 * Default settings of a consumer, as the constructs pass them, for a test that creates its own consumer. Name the `service` if its
 * handlers publish: see {@link producerConfig}.
 *
 * @example
 * ```ts
 * const consume = createConsumer({ config: consumerConfig(), table, queue, clock, handlers: [chargeOrder] });
 * ```
 */
export function consumerConfig(settings: Partial<ConsumerConfig> = {}): ConsumerConfig {
  return {
    ...producerConfig(settings),
    consumer: 'consumer',
    queueUrl: 'memory',
    leaseMs: 30_000,
    visibilityTimeoutMs: 180_000,
    maxAttempts: 10,
    retryFirstMs: 2_000,
    retryLongestMs: 900_000,
    inboxRetentionDays: 35,
    maxReceives: 105,
    ...settings,
  };
}

/**
 * Default settings of the relay, as the constructs pass them.
 *
 * @example
 * ```ts
 * const relay = createRelayStream({ config: relayConfig(), table, bus, clock });
 * ```
 */
export function relayConfig(settings: Partial<RelayConfig> = {}): RelayConfig {
  return {
    tableName: 'Mailroom',
    busName: 'bus',
    shards: 8,
    claimLeaseMs: 30_000,
    publishTimeoutMs: 5_000,
    maxAttempts: 10,
    publishedRetentionDays: 7,
    sweepEveryMs: 60_000,
    ...settings,
  };
}
