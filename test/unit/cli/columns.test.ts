import { expect, test } from 'vitest';
import { planText } from '../../../cli/changes/redrive/redrive-report.ts';
import { redrivenText } from '../../../cli/changes/redrive/redriven-text.ts';
import { runMailroom } from '../../../cli/program.ts';
import { auditText } from '../../../cli/reports/audit/audit-text.ts';
import { REDRIVE_VERDICTS } from '../../../cli/reports/dead-letters/redrive-plan.ts';
import { readStatus } from '../../../cli/reports/status/read-status.ts';
import { statusText } from '../../../cli/reports/status/status-text.ts';
import { traceText, verdictText } from '../../../cli/reports/why/trace-text.ts';
import { byCause, causesText } from '../../../cli/terminal/listing.ts';
import { detailedTable, table } from '../../../cli/terminal/output.ts';
import { COLUMNS, columnsOf, prose } from '../../../cli/terminal/prose.ts';
import { createTerminal } from '../../../cli/terminal/terminal.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { capturedIo, unwrapped } from '../../support/captured-io.ts';
import { withStored } from '../../support/with-stored.ts';
import { auditRig, consumerEntry } from '../runtime/operations/audit/audit-rig.ts';
import { directory, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { resourcesInMemory, wired, wiringOf } from './support/resources-in-memory.ts';
import { broken, drained, poison, why } from './support/why-rig.ts';

const EVENT_ID = '01a1fe32-7358-7e75-8b69-4ee374467501';

const commandLine = (command: string) =>
  `npx cdk-mailroom ${command} --stage production --region eu-central-1`;
const lines = { commandLine, awsLine: (command: string) => `aws ${command} --region eu-central-1` };

/** The lines that are too wide, except commands to paste and single words, which are never broken. */
function tooWide(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => columnsOf(line) > COLUMNS)
    .filter(
      (line) => line.trim().includes(' ') && !/^\s*(npx cdk|npx cdk-mailroom|aws) /.test(unwrapped(line)),
    );
}

async function helpOf(words: readonly string[]): Promise<string> {
  const { io, written } = capturedIo();
  expect(await runMailroom([...words, '--help'], io)).toBe(0);
  return written.out;
}

/** The help of a command and of all its subcommands. */
async function helps(words: readonly string[] = []): Promise<string[]> {
  const help = await helpOf(words);
  const list = help.split('\nCommands:\n')[1]?.split('\n\n')[0] ?? '';
  const names = [...list.matchAll(/^ {2}(\w+)/gm)].flatMap(([, name = '']) =>
    name === 'help' ? [] : [name],
  );
  const inner = await Promise.all(names.map((name) => helps([...words, name])));
  return [help, ...inner.flat()];
}

test('the help of every command fits 80 columns', async () => {
  const all = await helps();
  expect(all.length).toBeGreaterThan(14);
  expect(all.flatMap((help) => help.split('\n').filter((line) => line.length > COLUMNS))).toEqual([]);
});

test('an error about arguments fits 80 columns', async () => {
  const { io, written } = capturedIo();
  await runMailroom(['why', EVENT_ID, '--since', 'the day before yesterday'], io);
  expect(written.err).toContain('whole number');
  expect(tooWide(written.err)).toEqual([]);
});

test.each([
  ['rejected after all attempts', broken, 0],
  ['rejected as poison', poison, 20 * MINUTE_MS],
])('why and status, of a message that was %s, fit 80 columns', async (_what, handler, waitMs) => {
  const mailroom = mailroomInMemory([handler]);
  const eventId = await drained(mailroom);
  await mailroom.clock.advance(waitMs);
  const { verdict, trace } = await why(mailroom, eventId);
  const { table: rows, queues, clock } = mailroom;
  const status = await readStatus(
    withStored({
      directory,
      region: 'eu-west-1',
      table: rows,
      queues,
      wiring: wired,
      now: clock.now(),
    }),
  );
  for (const text of [verdictText(verdict), traceText(trace), statusText(status, lines)]) {
    expect(text).not.toBe('');
    expect(tooWide(text)).toEqual([]);
  }
});

test('a status with problems of the wiring, looks and unchecked parts fits 80 columns', async () => {
  const mailroom = mailroomInMemory([broken]);
  const { table: rows, queues, clock } = mailroom;
  const deny = () => Promise.reject(Object.assign(new Error('no'), { name: 'AccessDeniedException' }));
  const texts: string[] = [];
  for (const plant of [
    (deployed: ReturnType<typeof resourcesInMemory>) => deployed.buses.clear(),
    (deployed: ReturnType<typeof resourcesInMemory>) => deployed.rules.clear(),
    (deployed: ReturnType<typeof resourcesInMemory>) => deployed.mappings.clear(),
    (deployed: ReturnType<typeof resourcesInMemory>) => deployed.reserved.clear(),
  ]) {
    const deployed = resourcesInMemory();
    plant(deployed);
    const report = await readStatus(
      withStored({
        directory,
        region: 'eu-west-1',
        table: rows,
        queues,
        wiring: wiringOf({ ...deployed.resources, table: deny }),
        now: clock.now(),
      }),
    );
    const looks = (['failing', 'stalled', 'behind'] as const).map((look) => ({
      consumer: 'a-consumer-with-a-long-name',
      look,
      messages: 12_345,
      forMs: 7_500_000,
    }));
    texts.push(statusText({ ...report, looks }, lines));
  }
  for (const text of texts) {
    expect(text).toContain('not checked');
    expect(tooWide(text)).toEqual([]);
  }
});

test('an audit with every finding fits 80 columns', async () => {
  const rig = auditRig([consumerEntry('a-consumer-with-a-long-name')]);
  for (let twice = 0; twice < 2; twice += 1) await rig.event(20 * MINUTE_MS, {}, { causationId: 'cause' });
  const { eventId } = await rig.event(20 * MINUTE_MS);
  await rig.inbox('a-consumer-with-a-long-name', eventId, 'PARKED' as never);
  rig.rules.clear();
  const report = await rig.run();
  const counts = Object.values(report.consumers)[0];
  if (counts === undefined) throw new Error('The audit has no consumer');
  const all = { ...counts };
  for (const name of Object.keys(all) as (keyof typeof all)[]) Object.assign(all, { [name]: 12_345 });
  const full = { ...report, consumers: { ...report.consumers, 'a-consumer-with-a-long-name': all } };
  const doubt = {
    consumer: 'a-consumer-with-a-long-name',
    events: 12_345,
    queued: 1_234,
    missingAtLeast: 11_111,
  };
  const inconclusive = [
    { ...doubt, conclusiveAt: null },
    { ...doubt, conclusiveAt: report.until },
  ];
  const consumer = 'a-consumer-with-a-long-name';
  const counts12 = { published: 12_345_678, processed: 12_345_678, withinSlo: 12_345_678 };
  const found = {
    ...full,
    inconclusive,
    incomplete: ['x '.repeat(100)],
    deliveries: [{ consumer, from: 0, ...counts12 }],
    errorBudgets: [
      {
        consumer,
        latencyMs: 7_500_000,
        percentile: 99.99,
        published: 1,
        allowed: 1,
        missed: 12_345,
        left: -12_344,
      },
    ],
  };
  const commands = {
    repair: commandLine('audit --repair'),
    apply: commandLine('audit --apply'),
    doctor: commandLine('doctor'),
    restore: ['npx cdk deploy mailroom-dev --revert-drift'],
    recheck: { at: 0, command: 'audit' },
  };
  const place = {
    stack: 'a-stack-with-a-long-name-in-production',
    account: '111122223333',
    region: 'eu-central-1',
  };
  const unsent = found.missing.map((event) => ({
    ...event,
    why: 'its outbox row has expired, and its payload with it',
  }));
  for (const repair of [
    undefined,
    { applied: false, place, events: found.missing, unsent, rows: { repaired: [], unrepaired: [] } },
  ]) {
    const text = auditText({ report: found, byDay: true, repair }, commands);
    expect(unwrapped(text)).toContain('12345 unproven');
    expect(tooWide(text)).toEqual([]);
  }
});

test('a plan with every verdict, and a redrive that stopped, fit 80 columns', () => {
  const long = 'payments BankError: the bank answered with a sentence that does not end '.repeat(3);
  const judged = REDRIVE_VERDICTS.map((verdict) => ({
    id: EVENT_ID,
    eventId: EVENT_ID,
    type: 'OrderPlaced',
    sentAt: 0,
    expiresAt: 14 * 86_400_000,
    fingerprint: long,
    lastError: long,
    verdict,
  }));
  const url = 'dead-letters';
  const source = { name: 'consumer:worker', kind: 'consumer', consumer: worker, url } as const;
  const place = {
    stack: 'a-stack-with-a-long-name-in-production',
    account: '111122223333',
    region: 'eu-central-1',
  };
  const plan = { place, source, judged, received: { deadLetters: judged, total: 6 }, choice: {} };
  const clock = { now: () => 5_700_000, sleep: async () => {} };
  const [first] = judged;
  const back = first === undefined ? [] : [{ deadLetter: first, fingerprint: long, sameCause: true }];
  const stopped = redrivenText({ clock, ...lines }, plan, {
    done: [],
    handled: [],
    superseded: [],
    back,
    waiting: [],
    untried: judged.map((deadLetter) => ({ deadLetter, why: 'failed-again' as const })),
  });
  const late = redrivenText({ clock, ...lines }, plan, {
    done: [],
    handled: [],
    superseded: [],
    back: [],
    waiting: judged,
    untried: [],
  });
  for (const text of [planText({ clock, ...lines }, plan), stopped, late]) expect(tooWide(text)).toEqual([]);
  const causes = byCause(judged.map(({ eventId }) => ({ fingerprint: long, eventId, at: 0 })));
  expect(tooWide(causesText(causes, 5_700_000))).toEqual([]);
});

test('notes and progress fit one terminal line or break between words', () => {
  const { io, written } = capturedIo({ isTerminal: true });
  const terminal = createTerminal(io, false);
  terminal.say('a note '.repeat(30));
  expect(tooWide(written.err)).toEqual([]);
  written.err = '';
  terminal.progress('progress '.repeat(30));
  expect(columnsOf(written.err.trim())).toBeLessThan(COLUMNS);
});

test('prose breaks between words and keeps commands in one line; later lines are indented', () => {
  const command = `\`npx cdk-mailroom why ${EVENT_ID}\``;
  const lines = prose(`Look at what happened to this event, in order: ${command} shows it.`).split('\n');
  expect(lines).toEqual(['Look at what happened to this event, in order:', `  ${command} shows it.`]);
});

test('the last column of a table wraps; details are below their row', () => {
  const words = 'word '.repeat(30).trim();
  expect(tooWide(table(['name', 'text'], [['a', words]]))).toEqual([]);
  const rows = ['first', 'second'].map((name) => ({ cells: [name, 1], details: [`about ${name} ${words}`] }));
  const lines = detailedTable(['name', 'n'], rows).split('\n').slice(1);
  expect(lines.filter((line) => !line.startsWith('  ')).map((line) => line.split(' ')[0])).toEqual([
    'first',
    'second',
  ]);
  expect(lines[1]).toMatch(/^ {2}about first/);
  expect(tooWide(lines.join('\n'))).toEqual([]);
});
