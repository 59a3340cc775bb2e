import { expect, test } from 'vitest';
import { mailroomInMemory } from './support/mailroom-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';

test('status names the Mailroom that it reads at once on a terminal, and not with --json or to a pipe', async () => {
  const mailroom = mailroomInMemory([]);
  const onTerminal = await runInMemory(mailroom, ['status'], { isTerminal: true });
  expect(onTerminal.err).toContain('Reading the status of mailroom-dev in ');
  const asJson = await runInMemory(mailroom, ['status', '--json'], { isTerminal: true });
  expect(asJson.err).toBe('');
  expect((await runInMemory(mailroom, ['status'])).err).toBe('');
});
