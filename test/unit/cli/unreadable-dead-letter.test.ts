import { describe, expect, test } from 'vitest';
import { receiveDeadLetters } from '../../../cli/reports/dead-letters/dead-letters.ts';
import { inboxId } from '../../../cli/reports/dead-letters/standing.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { rejectedBy } from '../../../lambdas/runtime/operations/dead-letters.ts';
import { discardMessage, resolveMessage } from '../../../lambdas/runtime/operations/message-operations.ts';
import { unreadableId } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey, rejectedKey } from '../../../lambdas/runtime/store/keys.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { withStored } from '../../support/with-stored.ts';
import { directory, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';

const note = { consumer: worker.name, by: 'ada', reason: 'a copy that was cut' };

/** A message that bears the id of a real event, in a detail that is not an envelope, and was rejected for that. */
async function cutCopy() {
  const mailroom = mailroomInMemory([leased(ThingHappened, async () => {})]);
  const [event] = await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
  const eventId = event?.eventId ?? '';
  const body = JSON.stringify({ 'detail-type': 'ThingHappened', detail: { eventId } });
  mailroom.queue.send(body);
  await mailroom.drain();
  const rowId = unreadableId(body);
  return { mailroom, eventId, rowId };
}

describe('a dead letter with an event id in a body that is not an envelope', () => {
  test('is the message that its consumer rejected, and not the event', async () => {
    const { mailroom, rowId } = await cutCopy();
    const source = rejectedBy(worker);
    const { deadLetters } = await receiveDeadLetters(withStored({ ...mailroom, directory }), source, {
      limit: 10,
      hideS: 1,
    });
    expect(deadLetters.map(inboxId)).toEqual([rowId]);
    expect(deadLetters[0]?.fingerprint).toContain('UNREADABLE_MESSAGE');
  });

  test('is discarded without touching the event, whose own message then runs', async () => {
    const { mailroom, eventId, rowId } = await cutCopy();
    const source = rejectedBy(worker);
    const { deadLetters } = await receiveDeadLetters(withStored({ ...mailroom, directory }), source, {
      limit: 10,
      hideS: 1,
    });
    for (const deadLetter of deadLetters)
      await discardMessage(mailroom, { ...note, eventId: inboxId(deadLetter) });
    expect(mailroom.memory.item(rejectedKey(worker.name, rowId))).toBeUndefined();
    await mailroom.publish();
    await mailroom.drain();
    expect(mailroom.memory.item(inboxKey(worker.name, eventId))).toMatchObject({ status: 'PROCESSED' });
  });
});

test('an unreadable message without a dead letter can be resolved, so that it does not stay rejected permanently', async () => {
  const { mailroom, rowId } = await cutCopy();
  expect(mailroom.memory.item(rejectedKey(worker.name, rowId))).toBeDefined();
  await resolveMessage(mailroom, { ...note, eventId: rowId });
  expect(mailroom.memory.item(rejectedKey(worker.name, rowId))).toBeUndefined();
});
