import { Logger } from '@aws-lambda-powertools/logger';
import type { Context } from 'aws-lambda';
import { afterEach, expect, test, vi } from 'vitest';
import { HOUR_MS, MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import { powertoolsTelemetry, type Telemetry } from '../../../../lambdas/runtime/observe/telemetry.ts';
import { createAuditHandler } from '../../../../lambdas/runtime/operations/audit/audit-handler.ts';
import { createHeartbeatHandler } from '../../../../lambdas/runtime/operations/heartbeat/heartbeat-handler.ts';
import { createRelayStream } from '../../../../lambdas/runtime/relay/relay-stream.ts';
import { createRelaySweep } from '../../../../lambdas/runtime/relay/relay-sweep.ts';
import { createConsumer } from '../../../../lambdas/runtime/sources/sqs/consumer.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { consumerConfig, relayConfig, rig, runThrough } from '../../../support/runtime-rig.ts';
import { writtenLines } from '../../../support/written-lines.ts';
import { auditRig, consumerEntry } from '../operations/audit/audit-rig.ts';

afterEach(() => {
  vi.unstubAllEnvs();
  vi.useRealTimers();
});

const common = { service: 'things', tableName: 'Mailroom' };

/** The functions that log, each with an event that makes it write a line. */
const FUNCTIONS: Readonly<Record<string, (telemetry: Telemetry) => (context: Context) => Promise<unknown>>> =
  {
    consumer: (telemetry) => {
      const parts = rig();
      const consume = createConsumer({ ...parts, config: consumerConfig, handlers: [], telemetry });
      return (context) => {
        parts.queue.send('not json');
        return runThrough(parts.clock, parts.queue.deliver(consume, 10, context));
      };
    },
    'stream relay': (telemetry) => {
      const handler = createRelayStream({ ...rig(), config: relayConfig, telemetry });
      return (context) => handler({ Records: [{ eventName: 'INSERT' }] }, context);
    },
    sweep: (telemetry) => {
      const parts = rig();
      const watch = async () => telemetry.log.warn('A queue cannot be read');
      const handler = createRelaySweep({ ...parts, config: relayConfig, watch, telemetry });
      return (context) => runThrough(parts.clock, handler({}, context));
    },
    audit: (telemetry) => {
      const { deps, directory, table } = auditRig([consumerEntry('payments')]);
      const config = { tableName: table.name, sinceMs: HOUR_MS, everyMs: 15 * MINUTE_MS };
      const handler = createAuditHandler({ ...deps, directory: async () => directory, config, telemetry });
      return (context) => handler({}, context);
    },
    heartbeat: (telemetry) => {
      const { directory } = auditRig();
      const { table, clock } = rig();
      const config = { ...consumerConfig, everyMs: 15 * MINUTE_MS };
      const handler = createHeartbeatHandler({
        config,
        table,
        clock,
        telemetry,
        directory: async () => directory,
      });
      return (context) => handler({}, context);
    },
  };

/** The log lines that one invocation writes: those in embedded metric format have no level. */
async function linesOf(run: () => Promise<unknown>) {
  const lines = (await writtenLines(run)) as Readonly<Record<string, unknown>>[];
  return lines.filter(({ level }) => level !== undefined);
}

test.each(Object.entries(FUNCTIONS))(
  "each line of the %s's invocations has its request id, its function and its cold start",
  async (_name, create) => {
    vi.stubEnv('AWS_LAMBDA_INITIALIZATION_TYPE', 'on-demand'); // only such functions start cold
    // Powertools warns of a metric of another year: the machine's clock must agree with those of the rigs.
    vi.useFakeTimers({ now: Date.UTC(2026, 0, 1, 12), toFake: ['Date'] });
    const invoke = create(powertoolsTelemetry(common));
    for (const [awsRequestId, isCold] of [
      ['request-1', true],
      ['request-2', false],
    ] as const) {
      const context = { ...lambdaContext({ functionName: 'worker-fn' }), awsRequestId };
      const lines = await linesOf(() => invoke(context));
      expect(lines.length).toBeGreaterThan(0);
      for (const line of lines)
        expect(line).toMatchObject({
          function_request_id: awsRequestId,
          function_name: 'worker-fn',
          cold_start: isCold,
        });
    }
  },
);

test('each invocation decides again whether it logs at the level DEBUG', async () => {
  vi.stubEnv('POWERTOOLS_LOGGER_SAMPLE_RATE', '0.5');
  const telemetry = powertoolsTelemetry(common);
  const sampled = [];
  // All 60 alike: once in 10^17 runs.
  for (let i = 0; i < 60; i += 1) {
    const lines = await linesOf(async () => {
      telemetry.startInvocation?.(lambdaContext());
      telemetry.log.debug('Detail');
    });
    sampled.push(lines.some(({ message }) => message === 'Detail'));
  }
  expect(new Set(sampled)).toEqual(new Set([true, false]));
});

test('the fields of an invocation do not reach your own logger, and a logger without them is accepted', async () => {
  const logger = new Logger({ serviceName: 'yours' });
  const { log, startInvocation } = powertoolsTelemetry({ ...common, logger });
  const [line, own] = await linesOf(async () => {
    startInvocation?.(lambdaContext());
    log.info('Mailroom');
    logger.info('Yours');
  });
  expect(line).toMatchObject({ message: 'Mailroom', function_name: 'test' });
  expect(own).toMatchObject({ message: 'Yours' });
  expect(own).not.toHaveProperty('function_name');

  const { debug, info, warn, error } = logger;
  const plain = powertoolsTelemetry({
    ...common,
    logger: { createChild: () => ({ debug, info, warn, error }) },
  });
  expect(() => plain.startInvocation?.(lambdaContext())).not.toThrow();
});
