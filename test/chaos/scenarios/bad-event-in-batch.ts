import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { pause } from '../../../demo/shop.ts';
import { dynamoTable } from '../../../lambdas/runtime/index.ts';
import { requeueDead } from '../../../lambdas/runtime/store/dynamo/outbox-operator.ts';
import { eventIdShard } from '../../../lambdas/runtime/store/event-id.ts';
import { deadKey } from '../../../lambdas/runtime/store/keys.ts';
import { countOrders } from '../counts.ts';
import type { Call } from '../fault-proxy.ts';
import { type BusEntryInput, refuseEntries } from '../faults.ts';
import type { Scenario } from '../scenario.ts';
import { LATE_MS } from '../timings.ts';

const ORDERS = 10;
const CODE = 'MalformedDetail';

/** EventBridge refuses one entry of a call for what it is, and takes the nine around it; later an operator requeues it. */
export const badEventInBatch: Scenario = {
  name: 'bad-event-in-batch',
  title: 'EventBridge refuses one event of ten in a call',
  run: async (stage) => {
    stage.step(
      `The stream is paused until ${ORDERS} events are late, so that the relay publishes them in one call`,
    );
    const resume = await stage.pauseMapping('relay-stream');
    const sweepAgain = stage.holdSweep();
    await stage.placeOrders(ORDERS);
    await pause(LATE_MS);
    const placed = (await stage.read()).events;
    const bad = placed[Math.floor(ORDERS / 2)];
    if (bad === undefined) throw new Error('The orders have no events');
    const { eventId, aggregateId } = bad.envelope;

    stage.step(`PutEvents returns ${CODE} for one of them`);
    const isBad = ({ Detail = '' }: BusEntryInput) => Detail.includes(eventId);
    const entriesOf = ({ body }: Call) => (body.Entries ?? []) as readonly BusEntryInput[];
    const sizes: number[] = [];
    const refusal = stage.fault(
      { action: 'PutEvents', where: (call) => entriesOf(call).some(isBad) },
      (call, forward) => {
        sizes.push(entriesOf(call).length);
        return refuseEntries(CODE, isBad)(call, forward);
      },
    );
    await resume();
    await stage.until('the relay has tried to publish them', () => refusal.hits > 0);
    sweepAgain();
    const readings = await stage.settle(ORDERS, new Set([aggregateId]));

    stage.step('The system has settled');
    stage.check(
      sizes[0] === ORDERS,
      `it was one entry of a call of ${sizes[0]}, tried ${refusal.hits === 1 ? 'once' : `${refusal.hits} times`}`,
    );
    const rows = readings.events.filter(({ row }) => row.type === 'OrderPlaced').map(({ row }) => row);
    const dead = rows.filter(({ status }) => status === 'DEAD');
    const published = rows.filter(({ status }) => status === 'PUBLISHED').length;
    stage.check(published === ORDERS - 1, `${published} of ${ORDERS} events are PUBLISHED`);
    stage.check(
      dead.length === 1 &&
        dead[0]?.SK === bad.row.SK &&
        dead[0].lastError !== undefined &&
        dead[0].expiresAt === undefined,
      'the refused one is DEAD, with its error, and nothing will expire it',
    );
    const key = deadKey(eventIdShard(eventId), eventId);
    const pointer = (await stage.system.rows(key.PK)).find(({ SK }) => SK === key.SK);
    stage.check(String(pointer?.fingerprint ?? '').includes(CODE), 'a pointer names it and its error');
    stage.check(!readings.charges.has(aggregateId), 'its order is not charged until an operator acts');

    const details = Array.from({ length: ORDERS }, (_, n) => (n === 0 ? eventId : 'a good one'));
    const naive = await stage.naive.publishThenMarkAll(details);
    stage.note(
      `without Mailroom (mark the whole call if it succeeds): ${naive.done} marked, ${naive.lost} lost without a trace`,
    );

    stage.step('The cause is fixed, and the operator requeues the event');
    refusal.remove();
    const table = dynamoTable({ client: new DynamoDBClient({}), tableName: stage.system.tableName });
    stage.check(await requeueDead({ table }, eventId), 'it was DEAD and is PENDING again');
    const repaired = await stage.settle(ORDERS);
    const left = (await stage.system.rows(key.PK)).filter(({ SK }) => SK === key.SK);
    stage.check(left.length === 0, 'its pointer is gone');
    stage.check(repaired.charges.get(aggregateId)?.length === 1, 'its order is charged, once');

    return countOrders(repaired, ORDERS);
  },
};
