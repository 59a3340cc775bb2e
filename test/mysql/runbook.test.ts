import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { runMailroom } from '../../cli/program.ts';
import { deliveredEvent } from '../../lambdas/runtime/operations/delivered-event.ts';
import { ID, idParameter, NOW } from '../../lambdas/runtime/store/mysql/expressions.ts';
import { ROOT } from '../docs/pages.ts';
import { shownCommandsOf } from '../docs/shell.ts';
import { capturedIo } from '../support/captured-io.ts';
import { operatedMailroom } from '../support/operated-mailroom.ts';
import { runInMemory } from '../unit/cli/support/run-in-memory.ts';
import {
  deadEvent,
  message,
  type Operated,
  pendingEvent,
  publishedEvent,
  startOperated,
  statesOf,
} from './support/operated.ts';

let operated: Operated;

beforeAll(async () => {
  operated = await startOperated('mysql-runbook');
});
afterAll(() => operated.close());
beforeEach(() => operated.clear());

const page = readFileSync(`${ROOT}docs/operating.md`, 'utf8');
const [, section = ''] = /^## In PostgreSQL or MySQL\n(.*?)^## /ms.exec(page) ?? [];

/** The commands of the section, as they are pasted; `shownCommandsOf` fills placeholders by this id. */
const FILLED = shownCommandsOf('`npx cdk-mailroom why <eventId>`')[0]?.at(-1) ?? '';
const commands = shownCommandsOf(section).map((words) => words.slice(2));
const statements = [...section.matchAll(/`mysql -e "(?<statement>[^"]+)"`/g)].map(
  ({ groups }) => groups?.statement ?? '',
);

/** A finding of each row of the table. */
async function planted() {
  const stuck = await pendingEvent(operated, Date.now() - 900_000);
  const dead = await deadEvent(operated);
  const rejected = await publishedEvent(operated, Date.now() - 600_000);
  await message(
    operated,
    rejected,
    'REJECTED',
    `fence = 'f', attempts = 1, rejected_at = ${NOW}, rejected_ids = ',"m1"', reason = 'POISON_MESSAGE', last_error = 'no such order', fingerprint = 'worker POISON'`,
  );
  return { stuck, dead, rejected };
}
type Planted = Awaited<ReturnType<typeof planted>>;

/** Commands that call more of AWS than the memory has: operate.test.ts runs their reports. */
const REPORTED: readonly string[] = ['doctor', 'audit --since 2h', 'audit --since 2h --repair'];

/** The event that each other command is about, and what it shows. */
const SHOWS: readonly (readonly [command: string, of: keyof Planted, shows: string | RegExp])[] = [
  ['status', 'stuck', /an event has been due for 15 min/],
  ['why <>', 'stuck', 'in MySQL'],
  ['dlq list dead --by cause', 'dead', /1 would publish now .* relay InvalidArgument/],
  ['dlq redrive dead', 'dead', 'To redrive'],
  ['dlq discard dead <>', 'dead', 'To discard'],
  ['mysql requeue --reason the bus takes it again', 'dead', 'requeued 1 event'],
  ['events list --pending --by source', 'stuck', 'things'],
  ['mysql migrate', 'stuck', 'Nothing was changed'],
  ['dlq list consumer:worker --by cause', 'rejected', '<> worker POISON'],
  ['messages list', 'rejected', 'no such order'],
  ['dlq redrive consumer:worker', 'rejected', 'consumer:worker: 1 of 1 dead letter'],
  ['messages resolve worker <>', 'rejected', 'To resolve it'],
];

/** A command without its option of the database, with its ids left out. */
function plain(words: readonly string[]): string {
  const rest = words.filter((word, i) => word !== '--database' && words[i - 1] !== '--database');
  return rest
    .join(' ')
    .replace(`consumer:${FILLED}`, 'consumer:worker')
    .replace(`resolve ${FILLED}`, 'resolve worker')
    .replaceAll(FILLED, '<>');
}

test('the section of databases has the commands of this test, and each names the database', () => {
  const names = [...REPORTED, ...SHOWS.map(([command]) => command)];
  expect(commands.map(plain).toSorted()).toEqual(names.toSorted());
  for (const words of commands) expect(words.join(' ')).toContain('--database $DATABASE_URL');
});

test.each(SHOWS)('%s shows what it is for', async (command, of, shows) => {
  const ids = await planted();
  const words = commands.find((one) => plain(one) === command) ?? [];
  const argv = words.map((word, i) => {
    if (word === '$DATABASE_URL') return operated.urlOf(command === 'mysql migrate' ? 'root' : 'ada');
    if (word === `consumer:${FILLED}`) return 'consumer:worker';
    if (words[i - 1] === 'resolve') return 'worker';
    return word.replace(FILLED, ids[of]);
  });
  const { out, err } = command.startsWith('mysql ') ? await ran(argv) : await inMemory(argv, ids);
  expect({ out: out.replaceAll(/\s+/g, ' '), err }).toMatchObject({
    out:
      typeof shows === 'string'
        ? expect.stringContaining(shows.replace('<>', ids[of]))
        : expect.stringMatching(shows),
  });
});

async function ran(argv: readonly string[]) {
  const { io, written } = capturedIo();
  await runMailroom(argv, io);
  return written;
}

/** With a dead letter of the rejected message. */
async function inMemory(argv: readonly string[], { rejected }: Planted) {
  const made = await operatedMailroom(operated.open);
  const named = {
    eventId: rejected,
    type: 'ThingHappened',
    version: 1,
    aggregateType: 'Thing',
    aggregateId: '42',
  };
  const envelope = JSON.stringify({
    ...named,
    occurredAt: Date.now(),
    correlationId: rejected,
    data: { n: 1 },
  });
  const delivery = { account: '111122223333', region: 'eu-west-1', time: Date.now() };
  made.addDeadLetter(made.directory.consumers[0]?.deadLetterQueue ?? '', {
    messageId: 'm1',
    receiptHandle: 'm1',
    body: deliveredEvent({ source: 'things', type: 'ThingHappened', envelope }, delivery),
    sentAt: Date.now() - 600_000,
    attributes: {},
  });
  return runInMemory(made, argv);
}

test('the statements of the section do what it says', async () => {
  const forged = await pendingEvent(operated);
  const other = await pendingEvent(operated);
  await operated.rows(`INSERT INTO mailroom.capture VALUES ('shop', 7, ${NOW}, ${NOW})`);
  expect(statements).toHaveLength(4);
  const found = [];
  for (const statement of statements)
    found.push(await operated.rows(statement.replace('<eventId>', forged).replace('<connector>', 'shop')));
  expect(found[1]).toMatchObject([{ connector: 'shop' }]);
  expect(await statesOf(operated, forged)).toEqual([]);
  expect(
    await operated.rows(`SELECT 1 FROM mailroom.event WHERE event_id = ${ID}`, idParameter(forged)),
  ).toEqual([]);
  expect(await statesOf(operated, other)).toEqual(['pending']);
  expect(await operated.rows('SELECT 1 FROM mailroom.capture')).toEqual([]);
});
