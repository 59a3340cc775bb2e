import { expect, test } from 'vitest';
import { readUnpublished } from '../../../cli/reports/events/list-events.ts';
import { messagesOf } from '../../../cli/reports/messages/list-messages.ts';
import { PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import type { Table } from '../../../lambdas/runtime/store/table.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { withStored } from '../../support/with-stored.ts';
import { mailroomInMemory, worker } from './support/mailroom-in-memory.ts';

const EVENTS = 130;

/** A table that counts the keys of each read of inbox and outbox rows. */
function counted<T extends Table>(table: T): { readonly table: T; readonly reads: number[] } {
  const reads: number[] = [];
  const get: Table['get'] = (key, options) => {
    if (/^(INBOX|OUTBOX)#/.test(key.PK)) reads.push(1);
    return table.get(key, options);
  };
  const getEach: Table['getEach'] = (keys, options) => {
    reads.push(keys.length);
    return table.getEach(keys, options);
  };
  return { table: { ...table, get, getEach }, reads };
}

/** A Mailroom with published events, of which the consumer rejects one in two, and the other messages fail. */
async function withMessages() {
  const mailroom = mailroomInMemory([
    leased(ThingHappened, async ({ data }) => {
      if (data.n % 2 === 0) throw new PoisonMessage('No such thing');
      throw new Error('The bank is closed');
    }),
  ]);
  for (let n = 0; n < EVENTS; n += 1) await mailroom.outbox.commit({ events: [mailroom.happened(n)] });
  await mailroom.publish();
  return mailroom;
}

const listed = { limit: 1_000 };

test('unclaimed messages are found by reading the inbox rows together', async () => {
  const mailroom = await withMessages();
  const { table, reads } = counted(mailroom.table);
  const { items, more } = await messagesOf(withStored({ ...mailroom, table }), worker, {
    ...listed,
    waiting: true,
  });
  expect({ messages: items.length, more }).toEqual({ messages: EVENTS, more: false });
  expect(reads.toSorted((a, b) => b - a)).toEqual([100, 30]);
});

test('failed and rejected messages are listed by reading the inbox rows together', async () => {
  const mailroom = await withMessages();
  for (let round = 0; round < 20; round += 1) await mailroom.deliver();
  const { table, reads } = counted(mailroom.table);
  const { items } = await messagesOf(withStored({ ...mailroom, table }), worker, listed);
  const failed = items.filter(({ status }) => status === 'FAILED').length;
  const rejected = items.filter(({ status }) => status === 'REJECTED').length;
  expect(Math.min(failed, rejected)).toBeGreaterThan(5);
  expect(items.every(({ type, attempt }) => type === 'ThingHappened' && attempt === 1)).toBe(true);
  expect(reads.toSorted()).toEqual([failed, rejected].toSorted());
});

test('DEAD events are listed by reading the outbox rows together', async () => {
  const refuse = { code: 'MalformedDetail', message: 'no' };
  const mailroom = mailroomInMemory([], { bus: { failEntry: () => refuse } });
  for (let n = 0; n < 30; n += 1) await mailroom.outbox.commit({ events: [mailroom.happened(n)] });
  await mailroom.publish();
  const { table, reads } = counted(mailroom.table);
  const { items } = await readUnpublished(withStored({ ...mailroom, table }), { pending: false, dead: true });
  expect(items).toHaveLength(30);
  expect(items.every(({ source, attempts }) => source === 'things' && attempts === 1)).toBe(true);
  expect(reads).toEqual([30]);
});
