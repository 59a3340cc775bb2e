import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { auditJson } from '../../../cli/reports/audit/audit-text.ts';
import { REDRIVE_VERDICTS } from '../../../cli/reports/dead-letters/redrive-plan.ts';
import { doctorJson, doctorReport } from '../../../cli/reports/findings/doctor.ts';
import { examine } from '../../../cli/reports/findings/examination.ts';
import type { NeighborStatus } from '../../../cli/reports/status/bus-status.ts';
import type { Warning } from '../../../cli/reports/status/consumer-warnings.ts';
import type { HeartbeatStatus } from '../../../cli/reports/status/heartbeat-status.ts';
import { readStatus } from '../../../cli/reports/status/read-status.ts';
import { statusJson } from '../../../cli/reports/status/status-text.ts';
import { STATES } from '../../../cli/reports/why/event-state.ts';
import { PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { DAY_MS, MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { planRepair } from '../../../lambdas/runtime/operations/audit/audit-repair.ts';
import { recordOperation } from '../../../lambdas/runtime/store/operation-record.ts';
import { CODE_FOLDER } from '../../docs/page-code.ts';
import { writeCode } from '../../docs/write-code.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { withStored } from '../../support/with-stored.ts';
import { auditRig, consumerEntry } from '../runtime/operations/audit/audit-rig.ts';
import { directory, mailroomInMemory } from './support/mailroom-in-memory.ts';
import { orderedMailroom } from './support/ordered-mailroom.ts';
import { resourcesInMemory } from './support/resources-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';
import { startLedger } from './support/source-ledger.ts';

/** The JSON documents under a heading of docs/cli-json.md. */
async function documented(heading: string): Promise<unknown[]> {
  const page = await readFile('docs/cli-json.md', 'utf8');
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

test('status prints the members in docs/cli-json.md', async () => {
  const { table, queues, clock } = await processedMailroom();
  const [expected] = await documented('status');
  startLedger({ table, clock });
  await clock.advance(1);
  const report = await readStatus(
    withStored({
      directory,
      region: 'eu-west-1',
      table,
      queues,
      wiring: async () => ({
        problems: [
          {
            part: 'payments',
            problem: 'no-bus',
            physicalId: '',
            level: 'flow',
            text: '',
            fix: [''],
            followUp: [''],
          },
        ],
        skipped: [],
        notChecked: [{ needs: [''], parts: [''] }],
      }),
      now: clock.now(),
    }),
  );
  const looks: readonly Warning[] = [
    { consumer: 'payments', look: 'missing', messages: 1, forMs: 1, conclusiveAt: 1, missingUntil: 1 },
    { consumer: 'payments', look: 'failing', messages: 1, forMs: 1, lastError: '' },
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
  const neighbor: NeighborStatus = {
    ...{
      stack: 'shipping-dev',
      parameter: null,
      state: 'ok',
      code: null,
      error: null,
      pending: 0,
      dead: 0,
      next: '',
    },
    consumers: { payments: { backlog: 0, deadLetters: 0 } },
  };
  const held = {
    because: 'held',
    store: null,
    events: 1,
    example: '',
    since: 1,
    committedAt: 1,
    until: 1,
  } as const;
  const outbox = { ...report.outbox, stuck: [{ ...held, lastError: null }] };
  const limits = [{ consumer: 'payments', limit: 'bank', key: '', messages: 1, lastAt: 1 }];
  const status = statusJson({ ...report, outbox, looks, heartbeat, limits }, lines);
  const document = { ...status, findings: statusJson(report, lines).findings, neighbors: [neighbor] };
  expect(members(JSON.parse(JSON.stringify(document)))).toEqual(members(expected));
});

test('doctor prints the members in docs/cli-json.md', async () => {
  const [expected] = await documented('doctor');
  const { deps, declared, changeMember } = resourcesInMemory();
  changeMember('workerQueue', 'MessageRetentionPeriod', 60);
  const logs = { type: 'AWS::Logs::LogGroup', logicalId: 'Logs', physicalId: 'logs', properties: {} };
  declared.push({ ...logs, part: 'sweep', stack: directory.mailroom });
  const [queue] = declared.filter(({ logicalId }) => logicalId === 'workerQueue');
  Object.assign(queue?.properties ?? {}, { Tags: [] });
  const resources = {
    ...deps.resources,
    alarms: () => Promise.reject(Object.assign(new Error(), { name: 'AccessDenied' })),
  };
  const report = doctorReport(
    directory,
    'eu-west-1',
    1,
    await examine({ ...deps, resources, detect: async () => ({ compared: 7, drifted: [] }) }),
  );
  expect(members(JSON.parse(JSON.stringify(doctorJson(report, lines))))).toEqual(members(expected));
});

test('a list of messages by cause names the consumer of each, and prints the members in docs/cli-json.md', async () => {
  const [, expected] = await documented('messages list');
  const failing = leased(ThingHappened, async () => {
    throw new PoisonMessage('the price is missing');
  });
  const mailroom = mailroomInMemory([failing]);
  await mailroom.outbox.commit({ events: [ThingHappened.create({ aggregateId: 'a', data: { n: 1 } })] });
  await mailroom.publish();
  await mailroom.deliver();
  const { out } = await runInMemory(mailroom, ['messages', 'list', '--by', 'cause', '--json']);
  const printed = JSON.parse(out);
  expect(printed.causes).toMatchObject([{ consumer: 'worker', count: 1 }]);
  expect(members(printed)).toEqual(members(expected));
});

test('audit prints the members in docs/cli-json.md', async () => {
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
  await rig.event(20 * MINUTE_MS, { status: 'PENDING', leaseUntil: rig.clock.now() + DAY_MS });
  await rig.inbox('payments', eventId, 'PARKED' as never);
  await rig.event(10 * MINUTE_MS);
  rig.queues.holds.set('payments-queue', 1);
  rig.ages.set('payments-queue', rig.clock.now() - 15 * MINUTE_MS);
  rig.rules.clear();
  const report = await rig.run();
  const { toSend } = await planRepair(rig.deps, report.missing);
  const place = { stack: 'mailroom-dev', account: '111122223333', region: 'eu-west-1' };
  const rows = { repaired: report.changedRows, unrepaired: [] };
  const printed = auditJson({ report, repair: { applied: true, place, events: toSend, unsent: [], rows } });
  expect(members(JSON.parse(JSON.stringify(printed)))).toEqual(members(expected));
});

test.each([
  ['events list', 0, () => ['events', 'list', '--published']],
  ['events republish', 0, (eventId: string) => ['events', 'republish', eventId]],
] as const)('%s prints the members in docs/cli-json.md', async (heading, nth, words) => {
  const mailroom = await processedMailroom();
  const { out, err } = await runInMemory(mailroom, [...words(mailroom.eventId), '--json']);
  expect(members(JSON.parse(out)), err).toEqual(members((await documented(heading))[nth]));
});

/** A message that is rejected, one that failed, an event that is DEAD, an operation, and a queue that is not as declared. */
async function mailroomInTrouble() {
  const mailroom = mailroomInMemory(
    [
      leased(ThingHappened, async ({ data: { n } }) => {
        throw n === 1 ? new PoisonMessage('the price is missing') : new Error('the bank answered 500');
      }),
    ],
    {
      bus: {
        failEntry: ({ detail }) =>
          detail.includes('"n":3') ? { code: 'InvalidArgument', message: 'Not JSON' } : undefined,
      },
    },
  );
  const committed = await mailroom.outbox.commit({ events: [1, 2, 3].map(mailroom.happened) });
  await mailroom.publish();
  await mailroom.deliver();
  const [rejected = '', failed = '', dead = ''] = committed.map(({ eventId }) => eventId);
  const { table, clock } = mailroom;
  const random = () => new Uint8Array(16);
  await recordOperation(
    { table, clock, random },
    { by: 'ada', reason: 'by hand', command: 'sweep', subject: 'an hour' },
  );
  const deployed = resourcesInMemory();
  deployed.changeMember('workerQueue', 'VisibilityTimeout', 60);
  return { mailroom: { ...mailroom, deployed }, ids: { rejected, failed, dead } };
}

type Ids = Awaited<ReturnType<typeof mailroomInTrouble>>['ids'];

test.each<[heading: string, nth: number, words: (ids: Ids) => string[], unless?: RegExp]>([
  ['why', 0, ({ rejected }) => ['why', rejected]],
  // The tests declare their events by definitions, which have more members than an entry of the directory.
  ['describe', 0, () => ['describe', 'worker'], /^\.events\[\]\./],
  ['logs', 0, ({ rejected }) => ['logs', rejected]],
  ['tail', 0, () => ['tail', '--since', '1h']],
  ['events list', 1, () => ['events', 'list', '--dead']],
  ['messages list', 0, () => ['messages', 'list']],
  ['messages list', 1, () => ['messages', 'list', '--by', 'cause']],
  ['messages resolve', 0, ({ failed }) => ['messages', 'resolve', 'worker', failed]],
  ['dlq show', 0, ({ dead }) => ['dlq', 'show', 'dead', dead]],
  ['pause, resume', 0, () => ['pause', 'worker']],
  ['operations', 0, () => ['operations']],
  ['sweep', 0, () => ['sweep', '--since', '1h']],
])('%s, example %i, has the members of docs/cli-json.md', async (heading, nth, words, unless = /^$/) => {
  const { mailroom, ids } = await mailroomInTrouble();
  const stop = new AbortController();
  const options = { onOut: () => stop.abort(), signal: stop.signal };
  const { out, err } = await runInMemory(mailroom, [...words(ids), '--json'], options);
  const [line = ''] = out.split('\n');
  const of = (document: unknown) => members(document).filter((member) => !unless.test(member));
  expect(of(JSON.parse(line)), err).toEqual(of((await documented(heading))[nth]));
});

test('order show prints the members in docs/cli-json.md', async () => {
  const rig = await orderedMailroom(3);
  await rig.commit([4, -1], [5, 1]);
  await rig.publish();
  await rig.drain();
  expect(members(await rig.json('order', 'show', 'worker'))).toEqual(
    members((await documented('order show'))[0]),
  );
});

test('events check prints the members in docs/cli-json.md', async () => {
  const mailroom = await processedMailroom();
  writeCode();
  const module = `${CODE_FOLDER}docs/recipes/share-definitions.md/src/index.ts`;
  const { out: exported } = await runInMemory(mailroom, ['events', 'export', module]);
  const input = exported.replace('"aggregateType": "Order"', '"aggregateType": "Cart"');
  const { out, err } = await runInMemory(mailroom, ['events', 'check', module, '--against', '-', '--json'], {
    input,
  });
  expect(members(JSON.parse(out)), err).toEqual(members((await documented('events check'))[0]));
});

/** The first cells of the tables under a heading of docs/cli-json.md whose first column has this title. */
function firstCells(section: string, title: string): string[] {
  const tables = [...section.matchAll(new RegExp(`^\\| ${title} \\|.*\\n(?:\\|.*\\n)+`, 'gm'))].map(
    ([table]) => table,
  );
  return tables.flatMap((table) => [...table.matchAll(/^\| (`.+?) \|/gm)].map(([, cell = '']) => cell));
}

test('every member that a table of docs/cli-json.md explains is in a document of its section', async () => {
  const page = await readFile('docs/cli-json.md', 'utf8');
  const explained = page.split(/^## /m).flatMap((section) => {
    const documents = [...section.matchAll(/```json\n([\s\S]*?)```/g)].map(([, json = '']) =>
      JSON.parse(json),
    );
    const known = documents.flatMap((document) => members(document).map(withoutPlaces));
    return firstCells(section, 'member').flatMap((cell) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, member = '']) => ({
        member: `${section.split('\n')[0]}: ${member}`,
        isKnown: known.some((path) => path.endsWith(`.${withoutPlaces(member)}`)),
      })),
    );
  });
  expect(explained.length).toBeGreaterThan(60);
  const unknown = explained.flatMap(({ member, isKnown }) => (isKnown ? [] : [member]));
  expect(unknown).toEqual(['why: events.*.data', 'why: events.*.payload']); // with --payload
});

test('docs/cli-json.md explains every state of an event, the worst first, and every verdict of a redrive', async () => {
  const page = await readFile('docs/cli-json.md', 'utf8');
  const quoted = (words: readonly string[]) => words.map((word) => `\`${word}\``);
  expect(firstCells(page, 'state')).toEqual(quoted(STATES));
  expect(firstCells(page, 'verdict').sort()).toEqual(quoted(REDRIVE_VERDICTS).sort());
});

/** A member's path without the marks of lists and of names: `.findings[].what` and `findings.*.what` are one. */
function withoutPlaces(path: string): string {
  return path.replaceAll(/\[\]|\.\*/g, '');
}

test('ack list prints the members in docs/cli-json.md', async () => {
  const mailroom = await processedMailroom();
  const deployed = resourcesInMemory();
  deployed.changeRule('bus|worker-rule', { enabled: false });
  const made = await runInMemory({ ...mailroom, deployed }, [
    'ack',
    'rule-disabled/worker',
    '--apply',
    '--reason',
    'known',
  ]);
  const { out } = await runInMemory(mailroom, ['ack', 'list', '--json']);
  const [expected] = await documented('ack');
  expect(members(JSON.parse(out)), made.err).toEqual(members(expected));
});
