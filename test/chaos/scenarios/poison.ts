import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Readings, WrittenEvent } from '../../../demo/readings.ts';
import { dynamoTable } from '../../../lambdas/runtime/index.ts';
import { resolveMessage } from '../../../lambdas/runtime/operations/message-operations.ts';
import { mintEventId } from '../../../lambdas/runtime/store/event-id.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import { inboxKey, rejectedKey } from '../../../lambdas/runtime/store/keys.ts';
import { asRow } from '../../../lambdas/runtime/store/row-schema.ts';
import { countOrders } from '../counts.ts';
import { type DeadLetter, deadLetters, redrive } from '../dead-letters.ts';
import type { Act } from '../fault-proxy.ts';
import { messagesOf } from '../inbox-calls.ts';
import type { Counts, Scenario } from '../scenario.ts';
import type { Stage } from '../stage.ts';

const ORDERS = 5;

/** One that the events of the order system have not come to. */
const UNKNOWN_VERSION = 99;

/** How often the batch comes to the naive consumer: SQS would hand it out eight times. */
const NAIVE_RECEIVES = 3;

/** A batch holds a message that fails until its cause is fixed elsewhere, and one that nothing will fix. */
export const poison: Scenario = {
  name: 'poison',
  title: 'a batch holds a message that fails until its cause is fixed, and one that is unreadable',
  run: async (stage) => {
    stage.step(`payments receives ${ORDERS} orders and an event of an unknown version in one batch`);
    const resume = await stage.pauseMapping('payments');
    await stage.placeOrders(ORDERS);
    const placed = (await stage.read()).events.filter(({ row }) => row.type === 'OrderPlaced');
    const [refused, other] = placed;
    if (refused === undefined || other === undefined) throw new Error('The orders have no events');
    const unknown = ofUnknownVersion(other);
    await stage.deliver('payments', unknown, 1);
    await stage.until('all wait in the queue of payments', async () => {
      return (await messagesOf(stage.system, 'payments')).length > ORDERS;
    });
    const { aggregateId } = refused.envelope;
    const refusal = stage.fault(
      { from: 'payments', action: 'Invoke', where: ({ body }) => body.orderId === aggregateId },
      refuseRequest,
    );
    const sends = stage.fault(
      { from: 'payments', where: ({ action }) => action.startsWith('SendMessage') },
      (_, forward) => forward(),
    );
    await resume();

    const bad = [refused, unknown];
    const letters = await lettersOf(stage, bad);
    stage.step('The bank has refused the request for one order; both messages are in the dead-letter queue');
    await checkRejected(stage, bad, letters);
    stage.check(refusal.hits === 1, `the handler of the refused order ran ${times(refusal.hits)}`);
    stage.check(
      sends.hits === 0 && letters.every(({ movedFrom }) => movedFrom !== ''),
      'SQS moved them there; the consumer did not send them',
    );
    const neighbors = placed.filter((event) => event !== refused);
    checkNeighbors(stage, await stage.read(), neighbors);

    stage.step('The bank is fixed, and an operator redrives both messages');
    refusal.remove();
    const counts = await mend(stage, refused, unknown);
    const naive = await stage.naive.chargeWholeBatch(neighbors.length, NAIVE_RECEIVES);
    stage.note(
      `without Mailroom (a batch succeeds or fails as a whole): it was received ${times(NAIVE_RECEIVES)} with a bad message in ` +
        `it, and its ${neighbors.length} good ones were charged ${naive.charges} times`,
    );
    return counts;
  },
};

/** The bank does not accept the request for what it is: payments can do nothing about that. */
const refuseRequest: Act = async () => ({
  status: 200, // of the invocation
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    statusCode: 400,
    body: { code: 'INVALID_REQUEST', message: 'customerId is not valid' },
  }),
});

/** A separate event, so that it is not taken for the one that it is made from. */
function ofUnknownVersion({ row, envelope }: WrittenEvent): WrittenEvent {
  return {
    row,
    envelope: { ...envelope, eventId: mintEventId(Date.now(), 8), version: UNKNOWN_VERSION },
  };
}

async function mend(stage: Stage, refused: WrittenEvent, unknown: WrittenEvent): Promise<Counts> {
  for (const { envelope } of [refused, unknown]) await redrive(stage.system, 'payments', envelope.eventId);
  const row = await stage.until('the refused order is processed', async () => {
    const found = await inboxRow(stage, refused);
    return found?.status === 'PROCESSED' && found;
  });
  const [letter] = await lettersOf(stage, [unknown]);
  const again = await inboxRow(stage, unknown);
  stage.step('One is processed; the other is a dead letter again');
  stage.check(
    row.attempts === 1 && !(await hasPointer(stage, refused)),
    'the order is charged at the first attempt after the redrive, and its pointer is gone',
  );
  stage.check(
    again?.status === 'REJECTED' &&
      again.rejectedIds?.size === 2 &&
      again.rejectedIds.has(letter?.messageId ?? ''),
    'what has an unknown version still was rejected again, under its new id too',
  );

  stage.step('The operator resolves that one without running it, and redrives it to delete it');
  const table = dynamoTable({ client: new DynamoDBClient({}), tableName: stage.system.tableName });
  await resolveMessage(
    { table },
    {
      consumer: 'payments',
      eventId: unknown.envelope.eventId,
      reason: 'no producer sends this version',
      by: 'chaos',
    },
  );
  await redrive(stage.system, 'payments', unknown.envelope.eventId);
  const readings = await stage.settle(ORDERS);
  const own = [refused, unknown].map(({ envelope }) => envelope.eventId);
  const left = (await deadLetters(stage.system, 'payments')).filter(({ eventId }) => own.includes(eventId));
  stage.check(
    left.length === 0 && !(await hasPointer(stage, unknown)),
    'no dead letter and no pointer is left',
  );
  return countOrders(readings, ORDERS);
}

/** Waits until the messages of these events are in the dead-letter queue. */
function lettersOf(
  { system, until }: Stage,
  events: readonly WrittenEvent[],
): Promise<readonly DeadLetter[]> {
  return until('SQS has moved what was rejected to the dead-letter queue', async () => {
    const found = await deadLetters(system, 'payments');
    const own = events.flatMap(
      ({ envelope }) => found.find(({ eventId }) => eventId === envelope.eventId) ?? [],
    );
    return own.length === events.length && own;
  });
}

async function checkRejected(
  stage: Stage,
  events: readonly WrittenEvent[],
  letters: readonly DeadLetter[],
): Promise<void> {
  for (const [i, event] of events.entries()) {
    const row = await inboxRow(stage, event);
    const { reason } = row?.status === 'REJECTED' ? row : {};
    stage.check(
      row?.status === 'REJECTED' &&
        row.rejectedIds?.has(letters[i]?.messageId ?? '') === true &&
        row.expiresAt === undefined &&
        (await hasPointer(stage, event)),
      `REJECTED, with a pointer, and nothing will expire it: ${reason}, ${row?.lastError}`,
    );
  }
}

function checkNeighbors(
  stage: Stage,
  { inbox, charges }: Readings,
  neighbors: readonly WrittenEvent[],
): void {
  const rows = neighbors.map(({ envelope }) => inbox.payments.get(envelope.eventId));
  stage.check(
    rows.every((row) => row?.status === 'PROCESSED' && row.attempts === 1) &&
      neighbors.every(({ envelope }) => charges.get(envelope.aggregateId)?.length === 1),
    `their ${neighbors.length} neighbors are processed, at the first attempt, and charged once each`,
  );
}

async function inboxRow({ system }: Stage, { envelope }: WrittenEvent): Promise<InboxRow | undefined> {
  const { PK, SK } = inboxKey('payments', envelope.eventId);
  const item = (await system.rows(PK)).find((row) => row.SK === SK);
  return item === undefined ? undefined : asRow<InboxRow>(item);
}

async function hasPointer({ system }: Stage, { envelope }: WrittenEvent): Promise<boolean> {
  const { PK, SK } = rejectedKey('payments', envelope.eventId);
  return (await system.rows(PK)).some((row) => row.SK === SK);
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
