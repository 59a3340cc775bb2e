import { expect, test } from 'vitest';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { mailroomInMemory } from './support/mailroom-in-memory.ts';
import { rejected, source } from './support/rejected-event.ts';
import { runInMemory } from './support/run-in-memory.ts';
import { drained } from './support/why-rig.ts';

/** The document of `why` for an event of a consumer that throws each of these errors once, then succeeds. */
async function whyAfter(...errors: readonly string[]) {
  const left = [...errors];
  const mailroom = mailroomInMemory([
    leased(ThingHappened, async () => {
      const error = left.shift();
      if (error !== undefined) throw new Error(error);
    }),
  ]);
  const eventId = await drained(mailroom);
  return JSON.parse((await runInMemory(mailroom, ['why', eventId, '--json'])).out);
}

test('the JSON of why has the cause of a rejection, its dead letter and the verdict of a redrive', async () => {
  const { command, eventId, letterId } = await rejected();
  const { verdict } = (await command('', 'why', eventId)).document;
  expect(verdict).toMatchObject({ state: 'rejected', deadLetter: { source, id: letterId, verdict: 'runs' } });
  expect(verdict.deadLetter.expiresAt).toBeGreaterThan(0);
  expect(verdict.cause).toMatch(/^[A-Z_]+: .*n is negative/);
});

test('a processed event has neither a cause nor a dead letter, although an attempt failed', async () => {
  const { verdict } = await whyAfter('the bank is closed');
  expect(verdict).toMatchObject({ state: 'processed', cause: null, deadLetter: null });
});

test.each([
  ['equal', ['request 1 failed', 'request 2 failed'], 1],
  ['different', ['the bank is closed', 'the card is blocked'], 2],
])('attempts with %s errors have %j as their causes', async (_, errors, different) => {
  const { events } = await whyAfter(...errors);
  const ended = events[0].story.filter(({ what }: { what: string }) => what === 'attempt-ended');
  expect(ended).toHaveLength(2);
  expect(new Set(ended.map(({ cause }: { cause: string }) => cause)).size).toBe(different);
});
