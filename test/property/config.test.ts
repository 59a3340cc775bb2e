import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  atOnceSettings,
  producerSettings,
  readAtOnceConfig,
  readProducerConfig,
  readRelayConfig,
  relaySettings,
} from '../../lambdas/runtime/base/config.ts';
import { consumerSettings, readConsumerConfig } from '../../lambdas/runtime/base/consumer-config.ts';
import { DAY_MS } from '../../lambdas/runtime/base/units.ts';
import { runs } from './support/runs.ts';

type Env = Record<string, string | undefined>;

/** An environment variable cannot hold the character 0; anything else may be in a name. */
const name = fc.string({ unit: 'grapheme', minLength: 1 });
const whole = (min: number, max: number) => fc.integer({ min, max });

const producer = {
  service: name,
  tableName: name,
  shards: whole(1, 256),
  bornLeaseMs: whole(1_000, 900_000),
  publishes: fc.array(fc.string()),
};
const relay = {
  tableName: name,
  busName: fc.stringMatching(/^[/.\-_A-Za-z0-9:]{1,80}$/),
  shards: whole(1, 256),
  claimLeaseMs: whole(1_000, 900_000),
  publishTimeoutMs: whole(100, 60_000),
  maxAttempts: whole(1, 1_000),
  publishedRetentionDays: whole(1, 3_650),
  sweepEveryMs: whole(1_000, DAY_MS),
  sources: fc.array(fc.string()),
};
const atOnce = {
  busName: relay.busName,
  timeoutMs: whole(100, 5_000),
  publishedRetentionDays: relay.publishedRetentionDays,
};
const consumer = {
  ...producer,
  consumer: name,
  queueUrl: name,
  leaseMs: whole(1_000, 43_200_000),
  visibilityTimeoutMs: whole(0, 43_200_000),
  maxAttempts: whole(1, 1_000),
  retryFirstMs: whole(0, 39_600_000),
  retryLongestMs: whole(0, 39_600_000),
  inboxRetentionDays: whole(1, 3_650),
  inboxSince: fc.option(whole(0, Number.MAX_SAFE_INTEGER), { nil: undefined }),
  existingQueue: fc.option(fc.boolean(), { nil: undefined }),
};

const kinds = [
  {
    kind: 'producer',
    config: fc.record(producer) as fc.Arbitrary<object>,
    encode: producerSettings.encode as (config: object) => Env,
    read: readProducerConfig as (env: Env) => object,
  },
  {
    kind: 'producer that publishes at once',
    config: fc.record(atOnce) as fc.Arbitrary<object>,
    encode: atOnceSettings.encode as (config: object) => Env,
    read: readAtOnceConfig as (env: Env) => object,
  },
  {
    kind: 'relay',
    config: fc.record(relay) as fc.Arbitrary<object>,
    encode: relaySettings.encode as (config: object) => Env,
    read: readRelayConfig as (env: Env) => object,
  },
  {
    kind: 'consumer',
    config: fc.record(consumer) as fc.Arbitrary<object>,
    encode: consumerSettings.encode as (config: object) => Env,
    read: readConsumerConfig as (env: Env) => object,
  },
];

/** The variables that hold whole numbers, and their limits. */
const LIMITS: Readonly<Record<string, readonly [number, number]>> = {
  MAILROOM_SHARDS: [1, 256],
  MAILROOM_BORN_LEASE_MS: [1_000, 900_000],
  MAILROOM_CLAIM_LEASE_MS: [1_000, 900_000],
  MAILROOM_PUBLISH_TIMEOUT_MS: [100, 60_000],
  MAILROOM_MAX_ATTEMPTS: [1, 1_000],
  MAILROOM_RETRY_FIRST_MS: [0, 39_600_000],
  MAILROOM_RETRY_LONGEST_MS: [0, 39_600_000],
  MAILROOM_PUBLISHED_RETENTION_DAYS: [1, 3_650],
  MAILROOM_SWEEP_EVERY_MS: [1_000, DAY_MS],
  MAILROOM_LEASE_MS: [1_000, 43_200_000],
  MAILROOM_VISIBILITY_TIMEOUT_MS: [0, 43_200_000],
  MAILROOM_INBOX_RETENTION_DAYS: [1, 3_650],
};

it.each(kinds)('a $kind reads back the settings that its construct wrote', ({ config, encode, read }) => {
  fc.assert(
    fc.property(config, (settings) => {
      // As it is in a process: beside variables of others, every value a text.
      const env = { PATH: '/bin', ...encode(settings) };
      expect(Object.values(env).every((value) => typeof value === 'string')).toBe(true);
      expect(read(env)).toEqual(settings);
    }),
    runs(200),
  );
});

/** Variables that may be missing, but not be empty. */
const OPTIONAL = ['MAILROOM_INBOX_SINCE', 'MAILROOM_EXISTING_QUEUE'];

it.each(kinds)(
  'a $kind without any one of its variables is refused by its name',
  ({ config, encode, read }) => {
    fc.assert(
      fc.property(config, fc.nat(), fc.constantFrom(undefined, ''), (settings, pick, nothing) => {
        const env = encode(settings);
        const needed = Object.keys(env).filter((name) => nothing === '' || !OPTIONAL.includes(name));
        const variable = nth(needed, pick);
        expect(() => read({ ...env, [variable]: nothing })).toThrow(badConfig(variable));
      }),
      runs(100),
    );
  },
);

it.each(kinds)(
  'a $kind with a number that is out of range, or none, is refused by its name',
  ({ config, encode, read }) => {
    const far = fc.oneof(whole(1, 2 ** 31), fc.constantFrom(1, Number.MAX_SAFE_INTEGER, Infinity));
    const noNumber = fc.constantFrom('NaN', '1.5', '1e-3', '12x', ' ', '1,000', '1_000', '0b', '--1', 'null');
    fc.assert(
      fc.property(
        config,
        fc.nat(),
        far,
        fc.boolean(),
        fc.option(noNumber),
        (settings, pick, by, up, text) => {
          const env = encode(settings);
          const variable = nth(
            Object.keys(env).filter((key) => key in LIMITS),
            pick,
          );
          const [min, max] = LIMITS[variable] ?? [0, 0];
          const value = text ?? String(up ? max + by : min - by);
          expect(() => read({ ...env, [variable]: value })).toThrow(badConfig(variable));
        },
      ),
      runs(200),
    );
  },
);

it('whatever the variables say, a configuration is read whole and within its limits, or refused by name', () => {
  const value = fc.oneof(
    fc.string(),
    fc.integer().map(String),
    fc.double().map(String),
    fc.constant(undefined),
  );
  fc.assert(
    fc.property(
      fc.constantFrom(...kinds),
      fc.dictionary(fc.constantFrom(...Object.keys(LIMITS), 'MAILROOM_BUS', 'MAILROOM_TABLE'), value),
      fc.record(relay),
      fc.record(consumer),
      ({ read, encode }, change, ofRelay, ofConsumer) => {
        const env = { ...relaySettings.encode(ofRelay), ...consumerSettings.encode(ofConsumer), ...change };
        let settings: object;
        try {
          settings = read(env);
        } catch (error) {
          expect(error).toMatchObject({ code: 'BAD_CONFIG', message: expect.stringContaining('MAILROOM_') });
          return;
        }
        for (const [variable, value] of Object.entries(encode(settings))) {
          const [min, max] = LIMITS[variable] ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
          if (!(variable in LIMITS)) expect(value).not.toBe('');
          else expect(Number(value) >= min && Number(value) <= max).toBe(true);
        }
      },
    ),
    runs(300),
  );
});

function badConfig(variable: string) {
  return expect.objectContaining({ code: 'BAD_CONFIG', message: expect.stringContaining(`${variable} is`) });
}

function nth(keys: readonly string[], pick: number): string {
  return keys[pick % keys.length] ?? '';
}
