import { expect, test } from 'vitest';
import {
  consumerSettings,
  producerSettings,
  readConsumerConfig,
  readProducerConfig,
  readRelayConfig,
  relaySettings,
} from '../../../../lambdas/runtime/base/config.ts';
import { consumerConfig, relayConfig } from '../../../support/runtime-rig.ts';

const producerConfig = {
  service: 'orders',
  tableName: 'Mailroom',
  shards: 8,
  bornLeaseMs: 30_000,
  publishes: ['OrderPlaced', 'Order, "paid"'],
};

test('the functions decode what the constructs encode', () => {
  expect(readProducerConfig(producerSettings.encode(producerConfig))).toEqual(producerConfig);
  const relay = { ...relayConfig, sources: ['orders'] };
  const consumer = { ...consumerConfig, publishes: [] };
  expect(readRelayConfig(relaySettings.encode(relay))).toEqual(relay);
  expect(readConsumerConfig(consumerSettings.encode(consumer))).toEqual(consumer);
});

test.each([
  ['MAILROOM_TABLE', undefined, 'is not set'],
  ['MAILROOM_SERVICE', undefined, 'to mailroom.addProducer, create a consumer'],
  ['MAILROOM_TABLE', '', 'expected a non-empty string'],
  ['MAILROOM_SHARDS', '0', 'a whole number from 1 to 256'],
  ['MAILROOM_SHARDS', '257', 'a whole number from 1 to 256'],
  ['MAILROOM_SHARDS', '8.5', 'a whole number'],
  ['MAILROOM_SHARDS', ' ', 'a whole number'],
  ['MAILROOM_BORN_LEASE_MS', '30s', 'is "30s"'],
  ['MAILROOM_PUBLISHES', undefined, 'is not set'],
  ['MAILROOM_PUBLISHES', 'OrderPlaced', 'expected a JSON list of strings'],
  ['MAILROOM_PUBLISHES', '[1]', 'expected a JSON list of strings'],
])('%s = %j is refused by name', (name, value, part) => {
  const env = { ...producerSettings.encode(producerConfig), [name]: value };
  expect(() => readProducerConfig(env)).toThrow(name);
  expect(() => readProducerConfig(env)).toThrow(part);
});
