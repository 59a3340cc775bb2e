import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DeleteCommand } from '@aws-sdk/lib-dynamodb';
import type { WrittenEvent } from '../../../demo/readings.ts';
import { dynamoTable, type Key } from '../../../lambdas/runtime/index.ts';
import { resolveMessage } from '../../../lambdas/runtime/operations/message-operations.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import { INBOX_PREFIX, inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { countOrders } from '../counts.ts';
import { tablePolicy } from '../deployed-policy.ts';
import type { Scenario } from '../scenario.ts';
import type { Stage } from '../stage.ts';

const ORDERS = 2;

/** An operator deletes what payments remembers of charged orders, and sends their messages again. */
export const manualFix: Scenario = {
  name: 'manual-fix',
  title: 'an operator deletes the inbox rows of charged orders, and sends their messages again',
  run: async (stage) => {
    stage.step(`${ORDERS} orders are placed, charged and processed`);
    await stage.placeOrders(ORDERS);
    await stage.settle(ORDERS);
    const placed = (await stage.read()).events.filter(({ row }) => row.type === 'OrderPlaced');
    const denied = await deniesDelete(stage);
    stage.check(denied, "the deployed table's policy denies the deletion of INBOX#* rows");

    stage.step("An operator deletes both inbox rows by hand, and with them the charges' stored results");
    for (const { envelope } of placed) await deleteRow(stage, inboxKey('payments', envelope.eventId));
    const left = (await stage.read()).inbox.payments.size;
    stage.check(left === 0, 'they are gone: this engine enforces no policies, AWS would refuse the deletion');

    stage.step('Both messages are sent again');
    await Promise.all(placed.map((event) => stage.deliver('payments', event, 1)));
    const failed = await stage.until('payments has tried both again', async () => {
      const rows = [...(await stage.read()).inbox.payments.values()];
      return rows.length === ORDERS && rows.every(hasBeenTried) && rows;
    });
    stage.check(
      failed.every(({ lastError = '' }) => lastError.includes('ConditionalCheckFailed')),
      'the payment rows exist: their condition refuses both commits, and with them a second event',
    );
    for (const event of placed) {
      const asked = await requestsOf(stage, event);
      stage.check(
        asked.length > 1 && new Set(asked.map(({ idempotencyKey }) => idempotencyKey)).size === 1,
        `the bank was called again (${asked.length} times in total), and recognized the key`,
      );
    }

    stage.step('The operator resolves both messages, as intended: they become PROCESSED without running');
    await Promise.all(placed.map((event) => resolve(stage, event)));
    const readings = await stage.settle(ORDERS);
    const charges = [...readings.charges.values()].flat().length;
    const captured = readings.events.filter(({ row }) => row.type === 'PaymentCaptured').length;
    stage.check(
      charges === ORDERS && captured === ORDERS,
      `${charges} charges and ${captured} PaymentCaptured for ${ORDERS} orders`,
    );

    const naive = await stage.naive.lookThenChargeForgotten();
    stage.note(
      `without Mailroom (check for a record, charge, record it): after the record was deleted and the ` +
        `event was redelivered, ${naive.charges} charges`,
    );
    return countOrders(readings, ORDERS);
  },
};

/** An error is kept on the row while the message is tried once more. */
function hasBeenTried({ status, lastError }: InboxRow): boolean {
  return status === 'PROCESSED' || lastError !== undefined;
}

async function deniesDelete({ system }: Stage): Promise<boolean> {
  const statements = await tablePolicy(system.endpoint);
  return statements.some(
    ({ Effect, Action, Condition }) =>
      Effect === 'Deny' &&
      [Action].flat().includes('dynamodb:DeleteItem') &&
      JSON.stringify(Condition).includes(`"${INBOX_PREFIX}*"`),
  );
}

async function deleteRow({ system }: Stage, { PK, SK }: Key): Promise<void> {
  await system.documents.send(new DeleteCommand({ TableName: system.tableName, Key: { PK, SK } }));
}

async function requestsOf({ system }: Stage, { envelope }: WrittenEvent) {
  return system.rows(`REQUEST#${envelope.aggregateId}`, system.bankTableName);
}

/** Again while payments is trying it, and so holds it. The operator has asked the bank: it knows the key of each charge. */
async function resolve(stage: Stage, { envelope }: WrittenEvent): Promise<void> {
  const table = dynamoTable({ client: new DynamoDBClient({}), tableName: stage.system.tableName });
  const resolution = {
    consumer: 'payments',
    eventId: envelope.eventId,
    reason: 'was charged before',
    by: 'chaos',
    effectsChecked: true,
  };
  await stage.until('the message is resolved', async () => {
    return (await resolveMessage({ table }, resolution)).status === 'resolved';
  });
}
