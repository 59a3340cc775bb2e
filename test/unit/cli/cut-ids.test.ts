import { expect, test } from 'vitest';
import { unwrapped } from '../../support/captured-io.ts';
import { mailroomInMemory } from './support/mailroom-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';
import { commit, fine, poison } from './support/why-rig.ts';

async function twoDeadLetters() {
  const mailroom = mailroomInMemory([poison]);
  const ids = [await commit(mailroom), await commit(mailroom)] as const;
  await mailroom.publish();
  await mailroom.drain();
  const first = mailroom.queue.deadLetters().find(({ body }) => body.includes(ids[0]));
  return { mailroom, ids, firstMessage: first?.messageId ?? '' };
}

test.each(['redrive', 'discard'])(
  'dlq %s takes the beginning of an id, and prints a command with the whole one',
  async (command) => {
    const { mailroom, ids, firstMessage } = await twoDeadLetters();
    const run = (...argv: string[]) => runInMemory(mailroom, ['dlq', command, 'consumer:worker', ...argv]);
    const typed = `${ids[1].slice(0, 23).toUpperCase()}…`;
    const { out } = await run(typed, '--json');
    expect(JSON.parse(out)).toMatchObject({ deadLetters: [{ eventId: ids[1] }] });
    if (command === 'discard')
      expect(unwrapped((await run(typed)).out)).toContain(`dlq discard consumer:worker ${ids[1]} --apply`);
    const byMessage = await run(firstMessage, typed, '--json');
    expect(JSON.parse(byMessage.out).deadLetters).toHaveLength(2);
  },
);

test.each(['redrive', 'discard', 'show'])(
  'dlq %s refuses the beginning of several ids, with the candidates, and one that is too short',
  async (command) => {
    const { mailroom, ids } = await twoDeadLetters();
    const run = (id: string) => runInMemory(mailroom, ['dlq', command, 'consumer:worker', id]);
    const both = await run(ids[0].slice(0, 8));
    expect(both.code).toBe(2);
    expect(both.err).toContain('AMBIGUOUS_ID');
    for (const id of ids) expect(both.err).toContain(id);
    const short = await run(ids[0].slice(0, 7));
    expect(short.err).toContain('NO_SUCH_DEAD_LETTER');
    expect(mailroom.shown).toHaveLength(4);
  },
);

test('messages resolve takes the beginning of an event id, and prints a command with the whole one', async () => {
  const { mailroom, ids } = await twoDeadLetters();
  const run = (id: string) => runInMemory(mailroom, ['messages', 'resolve', 'worker', id]);
  const one = await run(ids[0].slice(0, 23));
  expect(one.code).toBe(0);
  expect(unwrapped(one.out)).toContain(`messages resolve worker ${ids[0]} --apply`);
  expect((await run(ids[0].slice(0, 8))).err).toContain('AMBIGUOUS_ID');
});

test.each(['resolve', 'allow'])('message %s refuses a text that begins no id', async (command) => {
  const mailroom = mailroomInMemory([fine]);
  await commit(mailroom);
  for (const id of ['order-1', 'ffffffff', '5f0a1a0c-6a2e-4f0f-9a3c-0c9d5b7e4f11', 'unreadable-a b']) {
    const { code, err } = await runInMemory(mailroom, ['messages', command, 'worker', id]);
    expect(code).toBe(3);
    expect(err).toContain('NO_SUCH_EVENT');
  }
});
