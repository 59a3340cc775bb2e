import { expect, test } from 'vitest';
import { memoryPayloads } from '../../../testing/index.ts';
import { APPLY, rejected } from './support/rejected-event.ts';

/** A rejected event whose payload is an object. */
const largeEvent = async () => {
  const payloads = memoryPayloads({ aboveBytes: 1 });
  return { ...(await rejected({ payloads })), payloads };
};

test('a resend of an event with a large payload carries the new data, and no reference to the old object', async () => {
  const { resend, eventId, ran, sent, payloads, rowOf } = await largeEvent();
  expect([...payloads.objects.keys()]).toEqual([`events/${eventId}`]);
  const { document } = await resend({ n: 5 }, ...APPLY);
  expect(document).toMatchObject({ outcome: 'processed', verdict: 'runs' });
  expect(ran).toEqual([5]);
  const { detail } = JSON.parse(sent[0]?.body ?? '');
  expect(detail).toMatchObject({ eventId: document.newEventId, causationId: eventId, data: { n: 5 } });
  expect(detail).not.toHaveProperty('payload');
  expect(await rowOf(eventId)).toMatchObject({ status: 'DISCARDED', replacedBy: document.newEventId });
  expect([...payloads.objects.keys()]).toEqual([`events/${eventId}`]);
});

test('a resend needs no object: it replaces an event whose payload was erased', async () => {
  const { resend, ran, payloads } = await largeEvent();
  payloads.objects.clear();
  expect((await resend({ n: 5 }, ...APPLY)).document).toMatchObject({ outcome: 'processed' });
  expect(ran).toEqual([5]);
});
