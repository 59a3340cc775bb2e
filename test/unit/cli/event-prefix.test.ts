import { expect, test } from 'vitest';
import { wholeEventId } from '../../../cli/deployment/event-prefix.ts';
import { withStored } from '../../support/with-stored.ts';
import { mailroomInMemory } from './support/mailroom-in-memory.ts';
import { commit, drained, fine, poison } from './support/why-rig.ts';

test.each([8, 9, 13, 18, 23, 35, 36])(
  'an event is found by the first %i characters of its id',
  async (length) => {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await commit(mailroom);
    await mailroom.clock.advance(120_000);
    await commit(mailroom);
    const given = eventId.slice(0, length);
    expect(await wholeEventId(withStored(mailroom), given)).toBe(eventId);
    expect(await wholeEventId(withStored(mailroom), `${given.toUpperCase()}…`)).toBe(eventId);
  },
);

test('a rejected message whose outbox row has expired is found', async () => {
  const mailroom = mailroomInMemory([poison]);
  const eventId = await drained(mailroom);
  for (const { PK, SK } of mailroom.rows()) await mailroom.table.write({ Delete: { Key: { PK, SK } } });
  expect(await wholeEventId(withStored(mailroom), eventId.slice(0, 13))).toBe(eventId);
});

test('an ambiguous prefix lists the events that it may mean', async () => {
  const mailroom = mailroomInMemory([fine]);
  const ids = [await commit(mailroom), await commit(mailroom)].sort();
  const search = wholeEventId(withStored(mailroom), (ids[0] ?? '').slice(0, 13));
  await expect(search).rejects.toMatchObject({ code: 'AMBIGUOUS_ID' });
  await expect(search).rejects.toThrow(ids.join(', '));
});

test.each([
  'order-1',
  '01a1fe3',
  'ffffffff',
  '3f0c6a52-0b59-4b6e',
  '',
  '01a1fe32-7358-7e75-8b69-4ee3744675010',
])('another text, "%s", is not an event id', async (text) => {
  const mailroom = mailroomInMemory([fine]);
  await commit(mailroom);
  expect(await wholeEventId(withStored(mailroom), text)).toBeUndefined();
});
