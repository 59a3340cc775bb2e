import { Logger } from '@aws-lambda-powertools/logger';
import { describe, expect, test, vi } from 'vitest';
import { powertoolsTelemetry } from '../../../../lambdas/runtime/observe/telemetry.ts';
import { writtenLines } from '../../../support/written-lines.ts';

const common = { service: 'payments', tableName: 'Mailroom', consumer: 'payments' };

/** A line in embedded metric format. */
interface MetricLine extends Readonly<Record<string, unknown>> {
  readonly _aws: { readonly CloudWatchMetrics: readonly [{ readonly Dimensions: readonly string[][] }] };
}

const own = ['service', 'table', 'consumer'];
const dimensionsOf = (line: unknown) =>
  (line as MetricLine)._aws.CloudWatchMetrics[0].Dimensions.map((names) => [...names].sort());
const sorted = (...names: readonly string[]) => [...names].sort();

describe('metric dimensions', () => {
  test("are a second set beside Mailroom's own, in each line that is sent", async () => {
    const telemetry = powertoolsTelemetry({ ...common, metricDimensions: { team: 'billing' } });
    const lines = await writtenLines(() => {
      // Powertools sends a line itself with the hundredth value.
      for (let i = 0; i < 150; i += 1) telemetry.duration('ProcessLatency', i);
      telemetry.count('MessagesProcessed');
      telemetry.flush();
      telemetry.gauge('PendingEvents', 0);
      telemetry.flush();
      telemetry.flush();
    });
    expect(lines).toHaveLength(3);
    for (const line of lines) {
      expect(dimensionsOf(line)).toEqual([sorted(...own), sorted(...own, 'team')]);
      expect(line).toMatchObject({
        service: 'payments',
        table: 'Mailroom',
        consumer: 'payments',
        team: 'billing',
      });
    }
  });

  test("are only Mailroom's own unless configured", async () => {
    const telemetry = powertoolsTelemetry(common);
    const [line] = await writtenLines(() => {
      telemetry.count('MessagesProcessed');
      telemetry.flush();
    });
    expect(dimensionsOf(line)).toEqual([sorted(...own)]);
  });

  test.each<[string, Record<string, unknown>, RegExp]>([
    ["one of Mailroom's own", { table: 'x' }, /contains "table".*Rename it/],
    ['the name of a metric', { MessagesProcessed: 'x' }, /contains "MessagesProcessed"/],
    ['a name with a blank', { 'my team': 'x' }, /contains "my team"/],
    ['no value', { team: ' ' }, /contains "team" without a valid value/],
    ['a value that is not text', { team: 7 }, /contains "team" without a valid value/],
    ['a value that is not ASCII', { team: 'Zürich' }, /contains "team" without a valid value/],
    ['a control character', { team: 'a\nb' }, /contains "team" without a valid value/],
    ['11 names', Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`d${i}`, 'x'])), /at most 10/],
  ])('with %s are refused when the function starts', (_, metricDimensions, message) => {
    const options = { ...common, metricDimensions: metricDimensions as Record<string, string> };
    expect(() => powertoolsTelemetry(options)).toThrow(
      expect.objectContaining({ code: 'BAD_CONFIG', message: expect.stringMatching(message) }),
    );
  });
});

describe('log lines', () => {
  test('carry your fields, but never in place of one of a message', async () => {
    const { log } = powertoolsTelemetry({ ...common, logFields: { team: 'billing', eventId: 'yours' } });
    const [line, other] = await writtenLines(() => {
      log.info('One', { eventId: 'e-1' });
      log.info('Other');
    });
    expect(line).toMatchObject({ service: 'payments', team: 'billing', eventId: 'e-1' });
    expect(other).toMatchObject({ team: 'billing', eventId: 'yours' });
  });

  test('are those of a child of your logger, without the request that an error carries', async () => {
    vi.stubEnv('AWS_LAMBDA_FUNCTION_NAME', 'payments');
    const logger = new Logger({ serviceName: 'yours', persistentKeys: { region: 'eu' } });
    const { log } = powertoolsTelemetry({ ...common, logger, logFields: { team: 'billing' } });
    const error = Object.assign(new Error('refused'), { config: { data: '4111111111111111' } });
    const [line, own] = await writtenLines(() => {
      log.error('It failed', { error });
      logger.info('Yours');
    });
    expect(line).toMatchObject({
      service: 'yours',
      region: 'eu',
      team: 'billing',
      error: { message: 'refused' },
    });
    expect(JSON.stringify(line)).not.toContain('4111');
    expect(own).not.toHaveProperty('team');
  });
});
