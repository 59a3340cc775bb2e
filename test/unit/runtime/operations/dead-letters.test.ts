import { expect, test } from 'vitest';
import {
  deadLetterQueues,
  depthOf,
  peekDeadLetters,
  readDeadLetter,
  rejectedBy,
} from '../../../../lambdas/runtime/operations/dead-letters.ts';
import { deliveredEvent } from '../../../../lambdas/runtime/operations/delivered-event.ts';
import type { ConsumerEntry, Directory } from '../../../../lambdas/runtime/operations/directory.ts';
import type { QueueMessage, Queues } from '../../../../lambdas/runtime/operations/queues.ts';
import { rig } from '../../../support/runtime-rig.ts';

const payments = {
  name: 'payments',
  events: [],
  deadLetterQueue: 'payments-dead',
  undeliveredQueue: 'payments-undelivered',
} as unknown as ConsumerEntry;

/** A delivered event, and a dead letter with it. */
async function delivered(attributes: QueueMessage['attributes'] = {}) {
  const { outbox, happened, rows } = rig();
  const [event] = await outbox.commit({ events: [happened(1)] });
  const [row] = rows();
  if (event === undefined || row === undefined) throw new Error('unreachable');
  const body = deliveredEvent(row, { account: '1', region: 'eu-west-1', time: 0 });
  return { event, letter: letter(body, attributes) };
}

function letter(body: string, attributes: QueueMessage['attributes'] = {}): QueueMessage {
  return { messageId: 'm', receiptHandle: 'r', body, sentAt: 1_000, attributes };
}

test('the dead-letter queues are listed in the order of the flow', () => {
  const directory = { mailroom: { failureQueue: 'failures' }, consumers: [payments] } as unknown as Directory;
  expect(deadLetterQueues(directory).map(({ name, url }) => [name, url])).toEqual([
    ['stream', 'failures'],
    ['rule:payments', 'payments-undelivered'],
    ['consumer:payments', 'payments-dead'],
  ]);
});

test('a rejected message names its event and its type, and its cause is left to its inbox row', async () => {
  const { event, letter } = await delivered({ ERROR_CODE: 'written by hand' });
  expect(readDeadLetter({ kind: 'consumer' }, letter, 5_000)).toEqual({
    received: letter,
    eventId: event.eventId,
    type: 'ThingHappened',
    cause: undefined,
    expiresAt: 6_000,
  });
});

test('an undelivered event carries the error of EventBridge', async () => {
  const { event, letter } = await delivered({ ERROR_CODE: 'NO_PERMISSIONS', ERROR_MESSAGE: 'denied' });
  expect(readDeadLetter({ kind: 'rule' }, letter, 5_000)).toMatchObject({
    eventId: event.eventId,
    cause: 'NO_PERMISSIONS: denied',
  });
});

test('a discarded batch of the stream carries the condition of the mapping', () => {
  const body = JSON.stringify({
    requestContext: { condition: 'RetryAttemptsExhausted' },
    'detail-type': 'x',
  });
  expect(readDeadLetter({ kind: 'stream' }, letter(body), 0)).toMatchObject({
    eventId: undefined,
    type: undefined,
    cause: 'RetryAttemptsExhausted',
  });
});

test.each(['', 'null', '[1]', '{"requestContext":null,"detail-type":7}', '{'])(
  'an external body has no event: %s',
  (body) => {
    for (const kind of ['stream', 'rule', 'consumer'] as const)
      expect(readDeadLetter({ kind }, letter(body), 0)).toMatchObject({
        eventId: undefined,
        type: undefined,
        cause: undefined,
      });
  },
);

test('a peek makes every received dead letter visible again, and counts those that it did not receive', async () => {
  const shown: string[] = [];
  const queues: Pick<Queues, 'depth' | 'receive' | 'show'> = {
    depth: async (arn) => ({ arn, waiting: 1, inFlight: 2, retentionMs: 5_000 }),
    receive: async () => [letter('{}')],
    show: async (url, { messageId }) => {
      shown.push(`${url} ${messageId}`);
    },
  };
  const { deadLetters, total } = await peekDeadLetters(queues, rejectedBy(payments), {
    limit: 10,
    hideS: 15,
  });
  expect({ total, expiresAt: deadLetters.map(({ expiresAt }) => expiresAt) }).toEqual({
    total: 3,
    expiresAt: [6_000],
  });
  expect(shown).toEqual(['payments-dead m']);
});

test('a queue that does not exist has no depth; any other failure is thrown', async () => {
  const failing = (name: string) => ({
    depth: async () => Promise.reject(Object.assign(new Error(name), { name })),
  });
  expect(await depthOf(failing('QueueDoesNotExist'), 'url')).toBeUndefined();
  await expect(depthOf(failing('AccessDenied'), 'url')).rejects.toThrow('AccessDenied');
});
