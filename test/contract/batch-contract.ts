import { expect } from 'vitest';
import { dynamoInbox } from '../../lambdas/runtime/consume/dynamo-inbox.ts';
import type { Inbox } from '../../lambdas/runtime/consume/inbox-port.ts';
import type { Message } from '../../lambdas/runtime/inbox/inbox.ts';
import { createInbox } from '../../lambdas/runtime/store/dynamo/inbox-context.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import { mintEventId, systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import type { Table, TransactAction } from '../../lambdas/runtime/store/table.ts';
import { manualClock } from '../../testing/index.ts';
import { consumerConfig } from '../support/runtime-rig.ts';
import { type Case, describeCases, type Subject } from './cases.ts';

let inboxes = 0;

/** An inbox of its own in the table, with one of its functions. */
function batching(table: Table) {
  inboxes += 1;
  const consumer = `batching-${inboxes}`;
  const clock = manualClock();
  const config = { ...consumerConfig, consumer };
  const outbox = createOutbox({ config, table, clock });
  const inbox = dynamoInbox(createInbox({ ...config, table, clock, random: systemRandomBytes }), outbox);
  const messages = (count: number): Message[] =>
    Array.from({ length: count }, (_, i) => ({
      eventId: mintEventId(clock.now(), 2),
      messageId: `message-${i}`,
      type: 'ThingHappened',
    }));
  const total = { PK: `TOTAL#${consumer}`, SK: 'TOTAL' };
  return {
    messages,
    commit: async (of: readonly Message[], writes: readonly TransactAction[] = [plus(of.length)]) =>
      (inbox.commitBatch as NonNullable<Inbox['commitBatch']>)(
        of,
        async () => ({ writes, events: [] }),
        (work) => work,
      ),
    plus,
    put: (part: number, ConditionExpression?: string): TransactAction => ({
      Put: { Item: { PK: total.PK, SK: `PART#${part}` }, ConditionExpression },
    }),
    statuses: async (of: readonly Message[]) =>
      Promise.all(of.map(async ({ eventId }) => (await inbox.read(eventId))?.status)),
    total: async () => (await table.get(total, { consistent: true }))?.n ?? 0,
    inbox,
  };

  function plus(n: number): TransactAction {
    return { Update: { Key: total, UpdateExpression: 'ADD n :n', ExpressionAttributeValues: { ':n': n } } };
  }
}

const cases: readonly Case<Table>[] = [
  [
    'the rows of a batch and its writes are one transaction',
    async (table) => {
      const { messages, commit, statuses, total, inbox } = batching(table);
      const set = messages(10);
      expect(await commit(set)).toEqual({ status: 'committed', events: 0 });
      expect(new Set(await statuses(set))).toEqual(new Set(['PROCESSED']));
      expect(await total()).toBe(10);
      const row = await inbox.read(set[0]?.eventId ?? '');
      expect(row).toMatchObject({
        schema: 1,
        attempts: 1,
        type: 'ThingHappened',
        fence: expect.any(String),
        expiresAt: expect.any(Number),
      });
    },
  ],
  [
    'a batch with messages that have a row writes nothing, and names all of them',
    async (table) => {
      const { messages, commit, statuses, total } = batching(table);
      const [first, second, third] = messages(3) as [Message, Message, Message];
      await commit([second]);
      await commit([third]);
      expect(await commit([first, second, third])).toEqual({ status: 'rows', of: [second, third] });
      expect(await statuses([first])).toEqual([undefined]);
      expect(await total()).toBe(2);
      expect(await commit([first])).toMatchObject({ status: 'committed' });
    },
  ],
  [
    'of a batch that is committed twice, the second time writes nothing',
    async (table) => {
      const { messages, commit, total } = batching(table);
      const set = messages(4);
      await commit(set);
      expect(await commit(set.toReversed())).toMatchObject({ status: 'rows' });
      expect(await total()).toBe(4);
    },
  ],
  [
    'of batches that overlap, at most one at a time commits a message',
    async (table) => {
      const { messages, commit, statuses, total } = batching(table);
      const set = messages(4);
      const ends = await Promise.all([commit(set.slice(0, 3)), commit(set.slice(1)), commit(set.slice(2))]);
      const committed = ends.filter(({ status }) => status === 'committed');
      expect(committed.length).toBeGreaterThan(0);
      const done = (await statuses(set)).filter((status) => status === 'PROCESSED');
      expect(await total()).toBe(done.length);
    },
  ],
  [
    'a refused write refuses the rows, and its reasons are those of the writes',
    async (table) => {
      const { messages, commit, plus, put, statuses, total } = batching(table);
      const set = messages(2);
      const end = await commit(set, [plus(2), put(1, 'attribute_exists(PK)')]);
      expect(end).toMatchObject({ status: 'failed', wroteNothing: true, isOutage: false });
      expect(end).toMatchObject({
        error: { code: 'TRANSACTION_CANCELLED', reasons: [{ code: 'None' }, {}] },
      });
      expect(await statuses(set)).toEqual([undefined, undefined]);
      expect(await total()).toBe(0);
    },
  ],
  [
    'a row and a write that refuse together: the row decides',
    async (table) => {
      const { messages, commit, put } = batching(table);
      const set = messages(2);
      await commit(set.slice(1));
      expect(await commit(set, [put(1, 'attribute_exists(PK)')])).toEqual({
        status: 'rows',
        of: set.slice(1),
      });
    },
  ],
  [
    'a batch of 10 with 90 writes commits, and one with 91 is refused before it is sent',
    async (table) => {
      const { messages, commit, put, statuses } = batching(table);
      const writes = Array.from({ length: 91 }, (_, i) => put(i));
      const set = messages(10);
      expect(await commit(set, writes)).toMatchObject({
        status: 'failed',
        wroteNothing: true,
        error: { code: 'TRANSACTION_TOO_LARGE' },
      });
      expect(await commit(set, writes.slice(1))).toMatchObject({ status: 'committed' });
      expect(new Set(await statuses(set))).toEqual(new Set(['PROCESSED']));
    },
  ],
  [
    'a batch with one event twice is refused: no transaction has two actions on a row',
    async (table) => {
      const { messages, commit, statuses } = batching(table);
      const set = messages(2);
      expect(await commit([...set, set[0] as Message])).toMatchObject({ status: 'failed' });
      expect(await statuses(set)).toEqual([undefined, undefined]);
    },
  ],
];

/** The contract of an inbox that commits batches. */
export function describeBatches(name: string, make: () => Promise<Subject<Table>>): void {
  describeCases(name, cases, make, {});
}
