import { expect, test } from 'vitest';
import { inboxChangesOf } from '../../../cli/deployment/combined-inbox-changes.ts';
import { dynamoRows } from '../../../cli/deployment/dynamo-rows.ts';
import type { OpenDatabase } from '../../../cli/deployment/open-database.ts';
import type { DatabaseEngine } from '../../../lambdas/runtime/base/database-engine.ts';
import { inboxKey, lastKey } from '../../../lambdas/runtime/store/keys.ts';
import { worker } from './support/mailroom-in-memory.ts';
import { APPLY, rejected, source } from './support/rejected-event.ts';
import { runInMemory } from './support/run-in-memory.ts';

/** A rejected message of a strict consumer whose directory entry names this inbox. */
async function rejectedIn(inbox: DatabaseEngine | undefined, given?: DatabaseEngine) {
  const made = await rejected({ order: 'strict:block' });
  const consumers = made.directory.consumers.map((entry) => ({ ...entry, inbox }));
  const database = given === undefined ? undefined : ({ engine: given } as OpenDatabase);
  return { ...made, directory: { ...made.directory, consumers }, database };
}

const DECISIONS: readonly [name: string, argvOf: (eventId: string, letterId: string) => string[]][] = [
  ['messages resolve', (eventId) => ['messages', 'resolve', 'worker', eventId, '--force']],
  ['messages allow', (eventId) => ['messages', 'allow', 'worker', eventId]],
  ['dlq discard', (_eventId, letterId) => ['dlq', 'discard', source, letterId]],
  ['dlq resend', (_eventId, letterId) => ['dlq', 'resend', source, letterId, '--data', '-']],
  ['order skip', () => ['order', 'skip', 'worker', 'Thing', 't-1', '1']],
  ['order seed', () => ['order', 'seed', 'worker', 'Thing', 't-1', '3']],
];

test.each(
  DECISIONS.flatMap(([name, argvOf]) =>
    [undefined, 'postgres' as const].map((given) => ({ name, given, argvOf })),
  ),
)(
  '$name is refused for an inbox in MySQL if the database is $given, and names the option',
  async ({ given, argvOf }) => {
    const made = await rejectedIn('mysql', given);
    const before = made.memory.items();
    const argv = [...argvOf(made.eventId, made.letterId), ...APPLY, '--json'];
    const { code, err } = await made.until(runInMemory(made, argv, { input: '{"n":1}' }));
    expect(code).toBe(2);
    expect(JSON.parse(err).error).toMatchObject({
      code: 'NOT_IN_DATABASE',
      message: expect.stringMatching(
        /The inbox of worker is in MySQL, and .*Nothing was changed\. Repeat the command with --database mysql:\/\//,
      ),
    });
    expect(made.memory.items()).toEqual(before);
  },
);

test('every change of an inbox in a database is refused without that database, in every step', async () => {
  const { memory: table, directory, clock, eventId } = await rejectedIn('mysql');
  const changes = inboxChangesOf({ table, inTable: dynamoRows(table), clock, directory });
  const note = { eventId, by: 'ada', reason: 'known' };
  const key = lastKey({
    consumer: worker.name,
    group: '',
    source: 'things',
    aggregateType: 'Thing',
    aggregateId: '1',
  }).PK;
  const seen = { last: 0, exists: false };
  for (const change of [
    () => changes.read(worker.name, eventId),
    () => changes.allow(worker.name, note),
    () => changes.lastSequence(key),
    () => changes.raise({ key, sequence: 1, seen }, note),
  ])
    await expect(change()).rejects.toMatchObject({ code: 'NOT_IN_DATABASE' });
});

test('a decision is made for an inbox in the table, also if the directory names no inbox', async () => {
  const made = await rejectedIn(undefined);
  const changes = inboxChangesOf({ ...made, table: made.memory, inTable: dynamoRows(made.memory) });
  const argv = ['messages', 'resolve', 'worker', made.eventId, '--force', ...APPLY];
  const { code } = await made.until(runInMemory({ ...made, inboxChanges: changes }, argv));
  expect(code).toBe(0);
  expect(made.memory.item(inboxKey('worker', made.eventId))).toMatchObject({ status: 'PROCESSED' });
});
