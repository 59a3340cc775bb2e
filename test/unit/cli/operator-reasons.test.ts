import { expect, test } from 'vitest';
import { rejected, source } from './support/rejected-event.ts';

test('a reason that quotes another event does not discard that event', async () => {
  const { command, outbox, happened, publish, drain, letterId, ran, rowOf } = await rejected();
  const [other] = await outbox.commit({ events: [happened(7)] });
  const eventId = other?.eventId ?? '';
  const discard = (reason: string) =>
    command('', 'dlq', 'discard', source, letterId, '--apply', '--reason', reason);
  const first = await discard(`Sent again with other data as ${eventId}: the price was wrong`);
  expect(first.document.deadLetters).toMatchObject([{ outcome: 'discarded' }]);
  await discard('not needed');
  expect(await rowOf(eventId)).toBeUndefined();
  await publish();
  await drain();
  expect(ran).toEqual([7]);
});
