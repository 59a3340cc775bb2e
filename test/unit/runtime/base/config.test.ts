import { Duration } from 'aws-cdk-lib';
import { describe, expect, test } from 'vitest';
import {
  producerSettings,
  readProducerConfig,
  readRelayConfig,
  relaySettings,
} from '../../../../lambdas/runtime/base/config.ts';
import {
  consumerSettings,
  readConsumerConfig,
  readInboxConfig,
  readPostgresInboxConfig,
} from '../../../../lambdas/runtime/base/consumer-config.ts';
import { RETRY } from '../../../../lib/checks/receives.ts';
import { defaultInboxRetention } from '../../../../lib/checks/retentions.ts';
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

describe('the settings of an inbox without a queue', () => {
  const named = { MAILROOM_CONSUMER: 'payments', MAILROOM_SERVICE: 'payments', MAILROOM_TABLE: 'Mailroom' };

  test('are those of InboxConsumer by default, and publish nothing', () => {
    const none = Duration.days(1);
    expect(readInboxConfig({ ...named, MAILROOM_LEASE_MS: undefined })).toEqual({
      consumer: 'payments',
      service: 'payments',
      tableName: 'Mailroom',
      publishes: [],
      shards: 1,
      bornLeaseMs: 30_000,
      leaseMs: 30_000,
      maxAttempts: RETRY.maxAttempts,
      retryFirstMs: RETRY.first.toMilliseconds(),
      retryLongestMs: RETRY.longest.toMilliseconds(),
      inboxRetentionDays: defaultInboxRetention({
        queueRetention: none,
        deadLetterRetention: none,
        archive: undefined,
      }).toDays(),
    });
    expect(readInboxConfig({ ...named, MAILROOM_MAX_ATTEMPTS: '3' })).toMatchObject({ maxAttempts: 3 });
  });

  test.each([
    ['MAILROOM_CONSUMER', 'It is a name of your choice'],
    ['MAILROOM_SERVICE', 'It is the service'],
    ['MAILROOM_TABLE', "It is the name of the Mailroom's table"],
  ])('need %s; the error names it and where its value comes from', (name, origin) => {
    expect(() => readInboxConfig({ ...named, [name]: undefined })).toThrowError(
      expect.objectContaining({
        code: 'BAD_CONFIG',
        message: expect.stringMatching(new RegExp(`${name} is not set.*${origin}.*docs/sources.md`)),
      }),
    );
  });

  test('need the shards and the stream lease of the Mailroom only if it publishes', () => {
    const publishing = { ...named, MAILROOM_PUBLISHES: '["PaymentCaptured"]' };
    expect(() => readInboxConfig(publishing)).toThrowError(
      /MAILROOM_SHARDS is not set.*functions of the Mailroom.*MAILROOM_PUBLISHES/,
    );
    expect(() => readInboxConfig({ ...publishing, MAILROOM_SHARDS: '8' })).toThrowError(
      /MAILROOM_BORN_LEASE_MS is not set/,
    );
    const whole = { ...publishing, MAILROOM_SHARDS: '8', MAILROOM_BORN_LEASE_MS: '20000' };
    expect(readInboxConfig(whole)).toMatchObject({ shards: 8, bornLeaseMs: 20_000 });
    const { MAILROOM_TABLE: _, ...inDatabase } = publishing;
    expect(readPostgresInboxConfig(inDatabase)).toMatchObject({ publishes: ['PaymentCaptured'] });
  });
});
