import { test } from 'vitest';
import { auditText } from '../../../cli/reports/audit/audit-text.ts';
import { doctorReport, doctorText } from '../../../cli/reports/findings/doctor.ts';
import type { DoctorDeps } from '../../../cli/reports/findings/examination.ts';
import { examine } from '../../../cli/reports/findings/examination.ts';
import { PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { HEARTBEAT } from '../../../lambdas/runtime/events/heartbeat-event.ts';
import { createHeartbeatHandler } from '../../../lambdas/runtime/operations/heartbeat/heartbeat-handler.ts';
import { memoryTelemetry, producerConfig } from '../../../testing/index.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { auditRig, consumerEntry } from '../runtime/operations/audit/audit-rig.ts';
import { captured, capturedRuns, countedBytes, review } from './support/captured-output.ts';
import { directory, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { resourcesInMemory, targetOf } from './support/resources-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';

const AUDIT = {
  repair: 'npx cdk-mailroom audit --since 70m --repair --stage dev',
  apply: 'npx cdk-mailroom audit --since 70m --repair --apply --reason "the rule had drifted" --stage dev',
  doctor: 'npx cdk-mailroom doctor --stage dev',
  restore: ['npx cdk deploy orders-dev --revert-drift'],
  recheck: { at: Date.UTC(2026, 0, 1, 12, 4, 1), command: 'npx cdk-mailroom audit --since 75m --stage dev' },
};

/** An hour of which one consumer processed each event, one of them late. @param lost - events that it never received */
async function audited(lost: number) {
  const slo = { latencyMs: 30_000, percentile: 99 };
  const rig = auditRig([consumerEntry('payments', { slo })], countedBytes());
  for (const tookMs of [4_000, 6_000, 95_000]) {
    const { eventId, occurredAt } = await rig.event(20 * MINUTE_MS);
    await rig.inbox('payments', eventId, 'PROCESSED', { processedAt: occurredAt + tookMs });
  }
  for (let nth = 0; nth < lost; nth += 1) await rig.event(15 * MINUTE_MS);
  return rig;
}

test('the audit of an hour in which nothing is missing is the reviewed one', async () => {
  const report = await (await audited(0)).run();
  await review('audit', `$ mailroom audit\n\n${auditText({ report }, AUDIT)}\n`);
  const byDay = auditText({ report, byDay: true }, AUDIT);
  await review('audit-by-day', `$ mailroom audit --by day\n\n${byDay}\n`);
});

test('the audit of missing events and a drifted rule is the reviewed one', async () => {
  const rig = await audited(2);
  rig.rules.clear();
  for (const n of [1, 2]) await rig.event(10 * MINUTE_MS, {}, { causationId: 'order-7', data: { n } });
  const report = await rig.run();
  await review('audit-findings', `$ mailroom audit\n\n${auditText({ report }, AUDIT)}\n`);
});

async function doctorCapture(deps: DoctorDeps): Promise<string> {
  const report = doctorReport(deps.directory, 'eu-west-1', deps.now, await examine(deps));
  const text = doctorText(report, {
    commandLine: (command) => `npx cdk-mailroom ${command} --stage dev`,
    awsLine: (command) => `aws ${command} --region eu-west-1`,
  });
  return `$ mailroom doctor\n\n${text}\n`;
}

test('the doctor of a healthy Mailroom prints the reviewed text', async () => {
  await review('doctor', await doctorCapture(resourcesInMemory().deps));
});

test('the doctor of a Mailroom with problems prints the reviewed text', async () => {
  const { deps, rules, settings, changeMember, removeResource, alarm } = resourcesInMemory();
  rules.delete('bus|worker-rule');
  changeMember('Table', 'TimeToLiveSpecification', undefined);
  settings.alarms = [alarm('mailroom-ops-Stuck-1A', { isFiring: true, actions: [] })];
  removeResource('workerRule');
  changeMember('workerQueue', 'VisibilityTimeout', 10);
  changeMember('workerMapping', 'FunctionResponseTypes', undefined);
  changeMember('workerFunction', 'MemorySize', 1_024);
  const resources = {
    ...deps.resources,
    concurrency: () => Promise.reject(Object.assign(new Error(), { name: 'AccessDeniedException' })),
  };
  await review('doctor-findings', await doctorCapture({ ...deps, resources }));
});

const EVERY_MS = 10 * MINUTE_MS;

test('the status of a Mailroom with a late heartbeat is the reviewed one', async () => {
  const mailroom = mailroomInMemory([leased(ThingHappened, async () => {})], { random: countedBytes() });
  const { clock, table } = mailroom;
  const heartbeat = { function: 'heartbeat-function', rule: 'heartbeat-rule', everyMs: EVERY_MS };
  const subscribed = { ...worker, events: [...worker.events, HEARTBEAT] };
  const beating = {
    mailroom: { ...directory.mailroom, heartbeat, changedAt: clock.now() },
    consumers: [subscribed, { ...subscribed, name: 'payments', function: 'payments', rule: 'payments-rule' }],
  };
  const deployed = resourcesInMemory(beating);
  const targets = [targetOf('arn:aws:lambda:x:1:function:heartbeat-function')];
  deployed.rules.set('default|heartbeat-rule', { enabled: true, pattern: '', targets });
  const beat = createHeartbeatHandler({
    config: { ...producerConfig({ service: HEARTBEAT.source, shards: 2 }), everyMs: EVERY_MS },
    table,
    clock,
    random: countedBytes(),
    telemetry: memoryTelemetry(),
    directory: async () => beating,
  });
  await beat();
  await mailroom.publish();
  await mailroom.deliver();
  await clock.advance(EVERY_MS);
  await mailroom.publish();
  await review(
    'status-heartbeat-late',
    await captured({ ...mailroom, directory: beating, deployed }, ['status']),
  );
});

test('the result of a redrive is the reviewed one', async () => {
  const argv = ['dlq', 'redrive', 'consumer:worker', '--apply', '--reason', 'TICKET-7'];
  await review('dlq-redrive', await capturedRuns(argv, (columns) => redriven(argv, columns)));
});

/** Redrives three dead letters, one of which still has no price. */
async function redriven(argv: readonly string[], columns: number) {
  let refused = [1, 2, 3];
  const mailroom = mailroomInMemory(
    [
      leased(ThingHappened, async ({ data: { n } }) => {
        if (refused.includes(n)) throw new PoisonMessage('the price is missing');
      }),
    ],
    { random: countedBytes() },
  );
  const { queue, queues, clock } = mailroom;
  for (const n of refused)
    await mailroom.outbox.commit({
      events: [ThingHappened.create({ aggregateId: `thing-${n}`, data: { n } })],
    });
  await mailroom.publish();
  await mailroom.drain();
  refused = [1];
  const send = async (_url: string, body: string) => queue.send(body);
  const sending = { ...mailroom, queues: { ...queues, send, remove: async () => {} } };
  let ended = false;
  const run = runInMemory(sending, argv, { size: { rows: 50, columns } }).finally(() => {
    ended = true;
  });
  while (!ended) {
    await clock.advance(500);
    if (queue.messages().length > 0) await mailroom.deliver();
  }
  return run;
}
