import { expect, test } from 'vitest';
import {
  encodeConsumerConfig,
  encodeProducerConfig,
  encodeRelayConfig,
  readConsumerConfig,
  readProducerConfig,
  readRelayConfig,
} from '../../../lambdas/runtime/config.ts';
import { consumerConfig, relayConfig } from '../../support/runtime-bench.ts';

const producerConfig = { service: 'orders', tableName: 'Mailroom', shards: 8, bornLeaseMs: 30_000 };

test('what the constructs encode is what the functions decode', () => {
  expect(readProducerConfig(encodeProducerConfig(producerConfig))).toEqual(producerConfig);
  expect(readRelayConfig(encodeRelayConfig(relayConfig))).toEqual(relayConfig);
  expect(readConsumerConfig(encodeConsumerConfig(consumerConfig))).toEqual(consumerConfig);
});

test.each([
  ['MAILROOM_TABLE', undefined, 'is not set'],
  ['MAILROOM_SERVICE', undefined, 'to mailroom.addProducer, make a consumer'],
  ['MAILROOM_TABLE', '', 'expected a text'],
  ['MAILROOM_SHARDS', '0', 'a whole number from 1 to 256'],
  ['MAILROOM_SHARDS', '257', 'a whole number from 1 to 256'],
  ['MAILROOM_SHARDS', '8.5', 'a whole number'],
  ['MAILROOM_SHARDS', ' ', 'a whole number'],
  ['MAILROOM_BORN_LEASE_MS', '30s', 'is "30s"'],
])('%s = %j is refused by name', (name, value, part) => {
  const env = { ...encodeProducerConfig(producerConfig), [name]: value };
  expect(() => readProducerConfig(env)).toThrow(name);
  expect(() => readProducerConfig(env)).toThrow(part);
});
