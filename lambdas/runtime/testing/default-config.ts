import type { ConsumerConfig, ProducerConfig } from '../config.ts';

/**
 * The settings of a producer as the constructs give them by default, for a test that makes an outbox of its own.
 *
 * @example
 * ```ts
 * const table = memoryTable();
 * const outbox = createOutbox({ config: producerConfig({ service: 'orders' }), table });
 * ```
 */
export function producerConfig(settings: Partial<ProducerConfig> = {}): ProducerConfig {
  return { service: 'service', tableName: 'Mailroom', shards: 8, bornLeaseMs: 30_000, ...settings };
}

/**
 * The settings of a consumer as the constructs give them by default, for a test that makes a consumer of its own.
 *
 * @example
 * ```ts
 * const consume = createConsumer({ config: consumerConfig(), table, queue, clock, handlers: [chargeOrder] });
 * ```
 */
export function consumerConfig(settings: Partial<ConsumerConfig> = {}): ConsumerConfig {
  return {
    ...producerConfig(),
    consumer: 'consumer',
    queueUrl: 'memory',
    leaseMs: 30_000,
    visibilityTimeoutMs: 180_000,
    maxAttempts: 5,
    inboxRetentionDays: 35,
    ...settings,
  };
}
