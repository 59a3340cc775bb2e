import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { doctorJson, doctorReport } from '../../../cli/commands/doctor.ts';
import { auditJson } from '../../../cli/reports/audit/audit-text.ts';
import { examine } from '../../../cli/reports/checks/checks.ts';
import type { Warning } from '../../../cli/reports/status/consumer-warnings.ts';
import type { HeartbeatStatus } from '../../../cli/reports/status/heartbeat-status.ts';
import { readStatus } from '../../../cli/reports/status/status-report.ts';
import { statusJson } from '../../../cli/reports/status/status-text.ts';
import { readTrace } from '../../../cli/reports/why/trace-reader.ts';
import { eventReports } from '../../../cli/reports/why/trace-text.ts';
import { byCause } from '../../../cli/terminal/listing.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { planRepair } from '../../../lambdas/runtime/operations/audit/audit-repair.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { auditRig, consumerEntry } from '../runtime/operations/audit/audit-rig.ts';
import { directory, mailroomInMemory } from './support/mailroom-in-memory.ts';
import { resourcesInMemory } from './support/resources-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';

/** The JSON documents under a heading of docs/cli.md. */
async function documented(heading: string): Promise<unknown[]> {
  const page = await readFile('docs/cli.md', 'utf8');
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/```json\n([\s\S]*?)```/g)].map(([, json = '']) => JSON.parse(json) as unknown);
}

/** Every member of a document by its path. Consumers are under their names, so any name is as good as another. */
function members(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return [...new Set(value.flatMap((item) => members(item, `${path}[]`)))];
  if (typeof value !== 'object' || value === null) return [];
  const paths = Object.entries(value).flatMap(([name, inner]) => {
    const own = `${path}.${/(consumers|answers)$/.test(path) ? '*' : name}`;
    return [own, ...members(inner, own)];
  });
  return [...new Set(paths)].sort();
}

const lines = { commandLine: (command: string) => command, awsLine: (command: string) => command };

async function processedMailroom() {
  const mailroom = mailroomInMemory([leased(ThingHappened, async () => {})]);
  const [event] = await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
  await mailroom.publish();
  await mailroom.drain();
  return { ...mailroom, eventId: event?.eventId ?? '' };
}

test('status prints the members in docs/cli.md', async () => {
  const { table, queues, clock } = await processedMailroom();
  const [expected] = await documented('status');
  const report = await readStatus({
    directory,
    region: 'eu-west-1',
    table,
    queues,
    wiring: async () => ({
      problems: [{ part: 'payments', problem: 'no-bus', level: 'flow', text: '', fix: [''], followUp: [''] }],
      skipped: [],
      notChecked: [{ needs: [''], parts: [''] }],
    }),
    now: clock.now(),
  });
  const looks: readonly Warning[] = [
    { consumer: 'payments', look: 'missing', messages: 1, forMs: 1, conclusiveAt: 1 },
  ];
  const heartbeat: HeartbeatStatus = {
    state: 'ok',
    function: 'mailroom-heartbeat',
    eventId: '',
    sentAgoMs: 1,
    acknowledged: 1,
    slowestMs: 1,
    waiting: [],
    late: [{ consumer: 'payments', eventId: '', sentAt: 1 }],
  };
  expect(members(JSON.parse(JSON.stringify(statusJson({ ...report, looks, heartbeat }, lines))))).toEqual(
    members(expected),
  );
});

test('doctor prints the members in docs/cli.md', async () => {
  const [expected] = await documented('doctor');
  const { deps } = resourcesInMemory();
  const resources = {
    ...deps.resources,
    expiryAttribute: async () => undefined,
    alarms: () => Promise.reject(Object.assign(new Error(), { name: 'AccessDenied' })),
  };
  const report = doctorReport(directory, 'eu-west-1', 1, await examine({ ...deps, resources }));
  expect(members(JSON.parse(JSON.stringify(doctorJson(report, lines))))).toEqual(members(expected));
});

test('why prints the members of events in docs/cli.md', async () => {
  const { table, queues, eventId } = await processedMailroom();
  const [expected] = (await documented('why')) as [{ events: unknown }];
  const trace = await readTrace({ directory, table, queues }, [eventId]);
  const printed: unknown = JSON.parse(JSON.stringify(eventReports(trace, false)));
  expect(members(printed)).toEqual(members(expected.events));
});

test('lists by cause print the members in docs/cli.md', async () => {
  const [, expected] = (await documented('messages list')) as [unknown, { causes: unknown }];
  const causes = byCause([{ fingerprint: 'f', eventId: 'e', at: 1 }]);
  expect(members(causes)).toEqual(members(expected.causes));
});

test('audit prints the members in docs/cli.md', async () => {
  const [expected] = await documented('audit');
  const external = { source: 'aws.s3', type: 'Object Created', external: {} };
  const rig = auditRig([
    consumerEntry('payments', { slo: { latencyMs: 30_000, percentile: 99 } }),
    consumerEntry('thumbnails', { events: [external], rule: undefined }),
  ]);
  const processed = await rig.event(20 * MINUTE_MS);
  await rig.inbox('payments', processed.eventId);
  for (let twice = 0; twice < 2; twice += 1) await rig.event(20 * MINUTE_MS, {}, { causationId: 'cause' });
  const { eventId } = await rig.event(20 * MINUTE_MS);
  await rig.inbox('payments', eventId, 'PARKED' as never);
  await rig.event(10 * MINUTE_MS);
  rig.queues.holds.set('payments-queue', 1);
  rig.ages.set('payments-queue', rig.clock.now() - 15 * MINUTE_MS);
  rig.rules.clear();
  const report = await rig.run();
  const { toSend } = await planRepair(rig.deps, report.missing);
  const place = { stack: 'mailroom-dev', account: '111122223333', region: 'eu-west-1' };
  const printed = auditJson({ report, repair: { applied: true, place, events: toSend, unsent: [] } });
  expect(members(JSON.parse(JSON.stringify(printed)))).toEqual(members(expected));
});

test.each([
  ['events list', ['events', 'list', '--published']],
  ['events republish', ['events', 'republish']],
] as const)('%s prints the members in docs/cli.md', async (heading, argv) => {
  const mailroom = await processedMailroom();
  const words = argv[1] === 'republish' ? [...argv, mailroom.eventId] : argv;
  const { out, err } = await runInMemory(mailroom, [...words, '--json']);
  const [expected] = await documented(heading);
  expect(members(JSON.parse(out)), err).toEqual(members(expected));
});

test('ack list prints the members in docs/cli.md', async () => {
  const mailroom = await processedMailroom();
  const deployed = resourcesInMemory();
  deployed.changeRule('bus|worker-rule', { enabled: false });
  const made = await runInMemory({ ...mailroom, deployed }, [
    'ack',
    'worker-rule',
    '--apply',
    '--reason',
    'known',
  ]);
  const { out } = await runInMemory(mailroom, ['ack', 'list', '--json']);
  const [expected] = await documented('ack');
  expect(members(JSON.parse(out)), made.err).toEqual(members(expected));
});
