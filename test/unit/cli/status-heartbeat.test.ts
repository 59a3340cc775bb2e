import { describe, expect, test } from 'vitest';
import { readStatus } from '../../../cli/reports/status/read-status.ts';
import { statusText } from '../../../cli/reports/status/status-text.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { HEARTBEAT } from '../../../lambdas/runtime/events/heartbeat-event.ts';
import type { ConsumerEntry, Directory } from '../../../lambdas/runtime/operations/directory.ts';
import { createHeartbeatHandler } from '../../../lambdas/runtime/operations/heartbeat/heartbeat-handler.ts';
import { memoryTelemetry, producerConfig } from '../../../testing/index.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { withStored } from '../../support/with-stored.ts';
import { directory as deployed, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { resourcesInMemory, targetOf, wiringOf } from './support/resources-in-memory.ts';

const EVERY_MS = 10 * 60_000;

const lines = {
  commandLine: (command: string) => `mailroom ${command}`,
  awsLine: (command: string) => `aws ${command}`,
};

const subscribed: ConsumerEntry = { ...worker, events: [...worker.events, HEARTBEAT] };
const heartbeat = { function: 'heartbeat-function', rule: 'heartbeat-rule', everyMs: EVERY_MS };

/** A Mailroom with a heartbeat. @param more - consumers without a function */
function beating(...more: readonly string[]) {
  const failing = { now: false };
  const mailroom = mailroomInMemory([
    leased(ThingHappened, async () => {
      if (failing.now) throw new Error('no');
    }),
  ]);
  const { clock, table, queues } = mailroom;
  const directory: Directory = {
    mailroom: { ...deployed.mailroom, heartbeat, changedAt: clock.now() },
    consumers: [
      subscribed,
      ...more.map((name) => ({ ...subscribed, name, function: `${name}-function`, rule: `${name}-rule` })),
    ],
  };
  const wiring = resourcesInMemory(directory);
  wiring.rules.set('default|heartbeat-rule', {
    enabled: true,
    pattern: '',
    targets: [targetOf('arn:aws:lambda:x:1:function:heartbeat-function')],
  });
  return {
    ...mailroom,
    failing,
    wiring,
    beat: createHeartbeatHandler({
      config: { ...producerConfig({ service: HEARTBEAT.source, shards: 2 }), everyMs: EVERY_MS },
      table,
      clock,
      telemetry: memoryTelemetry(),
      directory: async () => directory,
    }),
    status: async () => {
      const read = wiringOf(wiring.resources, directory);
      const report = await readStatus(
        withStored({
          directory,
          region: 'x',
          table,
          queues,
          wiring: read,
          now: clock.now(),
        }),
      );
      return { ...report, text: unwrapped(statusText(report, lines)) };
    },
  };
}

describe('the heartbeat in status', () => {
  test('is absent where none is scheduled', async () => {
    const { table, queues, clock } = mailroomInMemory([]);
    const wiring = wiringOf(resourcesInMemory().resources);
    const report = await readStatus(
      withStored({
        directory: deployed,
        region: 'x',
        table,
        queues,
        wiring,
        now: clock.now(),
      }),
    );
    expect(report.heartbeat).toBeNull();
    expect(statusText(report, lines)).not.toContain('heartbeat');
  });

  test('is one line when every consumer has acknowledged it', async () => {
    const { beat, publish, deliver, clock, status } = beating();
    const { sent } = await beat();
    await publish();
    await deliver();
    await clock.advance(42_000);
    const report = await status();
    expect(report).toMatchObject({
      state: 'ok',
      heartbeat: {
        state: 'ok',
        eventId: sent,
        acknowledged: 1,
        waiting: [],
        late: [],
        function: heartbeat.function,
      },
    });
  });

  test('is on its way until the next one is due', async () => {
    const { beat, publish, deliver, clock, status } = beating('audit');
    await beat();
    await publish();
    await deliver();
    const report = await status();
    expect(report.heartbeat).toMatchObject({ state: 'ok', acknowledged: 1, waiting: ['audit'] });
    await clock.advance(EVERY_MS / 2);
    expect((await status()).heartbeat?.state).toBe('ok');
  });

  test('names the consumer that is late, and the command that explains it', async () => {
    const { beat, publish, deliver, clock, status } = beating('audit');
    const { sent } = await beat();
    await publish();
    await deliver();
    await clock.advance(EVERY_MS);
    await publish();
    const report = await status();
    expect(report).toMatchObject({
      state: 'look',
      heartbeat: { state: 'late', late: [{ consumer: 'audit', eventId: sent }] },
    });
    expect(report.text).toMatch(/^1 warning /);
    expect(report.text).toContain(`mailroom why ${sent}`);
  });

  test('stays late while a later one is on its way, and is well once that arrived', async () => {
    const { beat, publish, deliver, clock, status } = beating();
    const { sent } = await beat();
    await publish();
    await clock.advance(EVERY_MS);
    await beat();
    expect((await status()).heartbeat).toMatchObject({ state: 'late', late: [{ eventId: sent }] });
    await publish();
    await deliver();
    expect((await status()).heartbeat).toMatchObject({ state: 'ok', late: [] });
  });

  test('leaves a consumer to the finding that explains why it is late', async () => {
    const { beat, publish, clock, status, wiring } = beating();
    await beat();
    await publish();
    await clock.advance(EVERY_MS);
    await publish();
    const mappings = wiring.mappings.get(worker.function) ?? [];
    wiring.mappings.set(
      worker.function,
      mappings.map((mapping) => ({ ...mapping, enabled: false })),
    );
    const report = await status();
    expect(report.heartbeat?.state).toBe('late');
    expect(report.text).toMatch(/^1 problem /);
    expect(report.text).not.toContain('heartbeat late');
  });

  test("a heartbeat that is not sent is reported with the command that shows its function's error", async () => {
    const { publish, clock, status } = beating();
    await clock.advance(2 * EVERY_MS);
    await publish();
    const { heartbeat: silent, state, text } = await status();
    expect({ silent, state }).toMatchObject({ silent: { state: 'silent', eventId: null }, state: 'look' });
    expect(text).toContain('aws lambda invoke --function-name heartbeat-function /dev/stdout');
  });

  test('whose schedule is disabled is a problem that one command solves', async () => {
    const { publish, clock, status, wiring } = beating();
    const rule = wiring.rules.get('default|heartbeat-rule');
    if (rule) wiring.rules.set('default|heartbeat-rule', { ...rule, enabled: false });
    await clock.advance(2 * EVERY_MS);
    await publish();
    const { state, text } = await status();
    expect(state).toBe('broken');
    expect(text).toMatch(/^1 problem /);
    expect(text).toContain('aws events enable-rule --name heartbeat-rule');
    expect(text).not.toContain('lambda invoke');
  });

  test('does not hide a consumer whose every attempt fails', async () => {
    const { beat, publish, deliver, clock, status, failing, outbox, happened } = beating();
    failing.now = true;
    for (let n = 1; n <= 10; n += 1) await outbox.commit({ events: [happened(n)] });
    await clock.advance(1_000);
    await beat();
    await publish();
    await deliver();
    await deliver();
    const report = await status();
    expect(report.heartbeat).toMatchObject({ acknowledged: 1, waiting: [] });
    expect(report.looks).toMatchObject([{ consumer: 'worker', look: 'failing', messages: 10 }]);
  });
});
