import type { SQSEvent } from 'aws-lambda';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { atOnceSettings } from '../../../lambdas/runtime/base/config.ts';
import { consumerSettings } from '../../../lambdas/runtime/base/consumer-config.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { lambdaConsumer, lambdaOutbox } from '../../../lambdas/runtime/lambda.ts';
import type { ConsumerHandler } from '../../../lambdas/runtime/sources/sqs/consumer.ts';
import { lambdaPublisher } from '../../../lambdas/runtime/store/dynamo/lambda-publisher.ts';
import { lambdaContext } from '../../../testing/index.ts';
import { consumerConfig, ThingHappened } from '../../support/runtime-rig.ts';

const environment = Object.entries(
  consumerSettings.encode({ ...consumerConfig, publishes: [ThingHappened.type] }),
);

function deploy(): void {
  for (const [name, value] of environment) vi.stubEnv(name, value);
}

/** An invocation that asks which of no messages can be read: it needs no table and no queue. */
const ask = (handler: ConsumerHandler) =>
  handler({ mailroomCheck: { bodies: [] } } as unknown as SQSEvent, lambdaContext());
const nothing = leased(ThingHappened, async () => {});

beforeEach(() => {
  for (const [name] of environment) vi.stubEnv(name, undefined);
  vi.stubEnv('AWS_LAMBDA_FUNCTION_NAME', undefined);
  vi.stubEnv('AWS_REGION', 'us-east-1');
});
afterEach(() => vi.unstubAllEnvs());

describe('outside of a function', () => {
  test('a consumer makes its handlers with the first message, once for two that come together', async () => {
    const make = vi.fn(() => [nothing]);
    const handler = lambdaConsumer(make);
    expect(make).not.toHaveBeenCalled();
    deploy();
    await Promise.all([ask(handler), ask(handler)]);
    await ask(handler);
    expect(make).toHaveBeenCalledTimes(1);
    expect(make).toHaveBeenCalledWith(
      expect.objectContaining({ table: expect.objectContaining({ name: 'Mailroom' }) }),
    );
  });

  test('a consumer whose making failed is recreated with the next message', async () => {
    deploy();
    const make = vi.fn(() => [nothing]);
    make.mockImplementationOnce(() => {
      throw new Error('not yet');
    });
    const handler = lambdaConsumer(make);
    await expect(ask(handler)).rejects.toThrow('not yet');
    await expect(ask(handler)).resolves.toMatchObject({ batchItemFailures: [] });
    expect(make).toHaveBeenCalledTimes(2);
  });

  test('an outbox without its settings rejects the first event, and is made when it has them', async () => {
    const outbox = lambdaOutbox();
    const events = [ThingHappened.create({ aggregateId: '1', data: { n: 1 } })];
    await expect(outbox.entries(events)).rejects.toMatchObject({ code: 'BAD_CONFIG' });
    await expect(outbox.commit({ events })).rejects.toMatchObject({ code: 'BAD_CONFIG' });
    deploy();
    await expect(outbox.entries(events)).resolves.toHaveLength(1);
  });
});

describe('in a function', () => {
  beforeEach(() => {
    vi.stubEnv('AWS_LAMBDA_FUNCTION_NAME', 'worker');
  });

  test('everything is made while it starts, and once', async () => {
    deploy();
    const make = vi.fn(() => [nothing]);
    const handler = lambdaConsumer(make);
    expect(make).toHaveBeenCalledTimes(1);
    await ask(handler);
    expect(make).toHaveBeenCalledTimes(1);
  });

  test('its options for logs and metrics are those of its telemetry', () => {
    deploy();
    const metricDimensions = { service: 'mine' };
    const refused = expect.objectContaining({
      code: 'BAD_CONFIG',
      message: expect.stringContaining('"service"'),
    });
    expect(() => lambdaConsumer([nothing], { metricDimensions })).toThrow(refused);
    expect(() => lambdaOutbox({ metricDimensions })).toThrow(refused);
  });

  test('a missing variable stops it from starting', () => {
    expect(() => lambdaOutbox()).toThrow(expect.objectContaining({ code: 'BAD_CONFIG' }));
    expect(() => lambdaConsumer([nothing])).toThrow(expect.objectContaining({ code: 'BAD_CONFIG' }));
    deploy();
    expect(() => lambdaConsumer([nothing, nothing])).toThrow(
      expect.objectContaining({ code: 'BAD_CONSUMER' }),
    );
    expect(() => lambdaConsumer(nothing as never)).toThrow(
      expect.objectContaining({
        code: 'BAD_CONSUMER',
        message: expect.stringContaining('lambdaConsumer([leased(OrderPlaced, …)])'),
      }),
    );
  });
});

describe('publishing at once', () => {
  const atOnce = atOnceSettings.encode({ busName: 'bus', timeoutMs: 1_000, publishedRetentionDays: 7 });
  const events = [ThingHappened.create({ aggregateId: '1', data: { n: 1 } })];
  const commit = (outbox: ReturnType<typeof lambdaOutbox>) => outbox.commit({ events });

  beforeEach(() => {
    deploy();
    for (const name of Object.keys(atOnce)) vi.stubEnv(name, undefined);
  });

  test('needs all of its settings, and the error names the first that is missing and the remedy', async () => {
    vi.stubEnv('MAILROOM_AT_ONCE_TIMEOUT_MS', '1000');
    await expect(commit(lambdaOutbox({ publishAtOnce: lambdaPublisher }))).rejects.toMatchObject({
      code: 'BAD_CONFIG',
      message: expect.stringMatching(/MAILROOM_BUS is not set.*pass publishAtOnce/),
    });
  });

  test('leaves publishing to the relay, with a warning, while a deployment has changed the code only', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    expect(lambdaPublisher()).toBeUndefined();
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('Pass publishAtOnce'));
  });

  test('leaves publishing to the relay, with a warning, while a deployment has changed the settings only', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    for (const [name, value] of Object.entries(atOnce)) vi.stubEnv(name, value);
    vi.stubEnv('AWS_LAMBDA_FUNCTION_NAME', 'orders');
    expect(() => lambdaOutbox()).not.toThrow();
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('publishAtOnce: lambdaPublisher'));
  });

  test('is made with both', () => {
    for (const [name, value] of Object.entries(atOnce)) vi.stubEnv(name, value);
    expect(lambdaPublisher()).toMatchObject({ timeoutMs: 1_000 });
    expect(() => lambdaOutbox({ publishAtOnce: lambdaPublisher })).not.toThrow();
  });
});
