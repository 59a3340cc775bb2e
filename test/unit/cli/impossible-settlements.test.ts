import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { worker } from './support/mailroom-in-memory.ts';
import { APPLY, rejected, source } from './support/rejected-event.ts';
import { runInMemory } from './support/run-in-memory.ts';

/** A rejected message of a consumer that owns `THING#*` and whose handler has a rejected function. */
async function rig() {
  const made = await rejected({ options: { rejected: async () => ({}) } });
  const consumers = made.directory.consumers.map((entry) => ({ ...entry, domainKeys: ['THING#*'] }));
  const mailroom = { ...made, directory: { ...made.directory, consumers } };
  const key = { ...inboxKey(worker.name, made.eventId) };
  return { ...made, key, run: (...argv: string[]) => made.until(runInMemory(mailroom, argv)) };
}

test('a plan does not promise to reject a message whose row was deleted by hand', async () => {
  const { run, memory, key, letterId, letters } = await rig();
  await memory.write({ Delete: { Key: key } });
  const discard = ['dlq', 'discard', source, letterId, '--reject', '--effects-checked', '--json'];
  const left = [
    { outcome: 'not-rejectable', message: expect.stringContaining('Discard it without --reject') },
  ];
  const plan = await run('dlq', 'discard', source, letterId, '--reject');
  expect(unwrapped(plan.out)).not.toContain('--effects-checked');
  expect(JSON.parse((await run(...discard)).out).deadLetters).toMatchObject(left);
  expect(JSON.parse((await run(...discard, ...APPLY)).out).deadLetters).toMatchObject(left);
  expect(await letters()).toEqual([letterId]);
});

test('a plan does not promise to commit a fix with a row that cannot be read, nor is it recorded', async () => {
  const { run, memory, key, eventId } = await rig();
  const row = memory.item(key);
  await memory.write({ Put: { Item: { ...row, ...key, status: 'SETTLED' } } });
  const path = join(await mkdtemp(join(tmpdir(), 'fix-')), 'fix.json');
  await writeFile(path, JSON.stringify({ writes: [{ Put: { Item: { PK: 'THING#1', SK: 'REFUND' } } }] }));
  const resolve = ['messages', 'resolve', 'worker', eventId, '--force', '--effects-checked'];
  const before = memory.items().length;
  for (const options of [[], APPLY]) {
    const { code, err } = await run(...resolve, '--commit', path, ...options);
    expect(code).not.toBe(0);
    expect(unwrapped(err)).toContain('resolve it with --force and without --commit');
  }
  expect(memory.items()).toHaveLength(before);
  expect(await run(...resolve, ...APPLY)).toMatchObject({ code: 0 });
});
