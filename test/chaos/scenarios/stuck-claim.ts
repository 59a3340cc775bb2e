import { GetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import { required } from '../../../demo/readings.ts';
import { countOrders } from '../counts.ts';
import { killAfter } from '../faults.ts';
import { watchClaims } from '../inbox-calls.ts';
import type { Scenario } from '../scenario.ts';
import type { Stage } from '../stage.ts';
import { CONSUMER_TIMINGS } from '../timings.ts';

const MEANWHILE = 2;

/** Less than the lease, against the advice of synth: so the message is redelivered while its dead worker holds it. */
const HIDDEN_S = 5;

/** A worker dies with a claim, after the bank has charged and before anybody knows; its message is redelivered too early. */
export const stuckClaim: Scenario = {
  name: 'stuck-claim',
  title: 'a worker is killed in its handler, and its lease outlives it',
  run: async (stage) => {
    const { leaseMs, timeoutS } = CONSUMER_TIMINGS;
    stage.step(
      `A lease lasts ${leaseMs / 1_000} s, a function ${timeoutS} s, and the queue redelivers after ${HIDDEN_S} s; an order is placed`,
    );
    await stage.hideFor('payments', HIDDEN_S);
    const tries = watchClaims(stage, 'payments');
    stage.fault({ from: 'payments', action: 'Invoke', times: 1 }, killAfter(stage.system.kill));
    const wave = await stage.placeOrders(1);
    await stage.until('the bank charges', async () => (await stage.read(wave)).charges.size === 1);
    const { events } = await stage.read(wave);
    const { eventId = '', aggregateId = '' } =
      events.find(({ row }) => row.type === 'OrderPlaced')?.envelope ?? {};
    const own = () => tries.filter((tried) => tried.eventId === eventId);
    const first = await stage.until('its claim is known', () => own().find(({ granted }) => granted));
    const left = ((first.leaseUntil - Date.now()) / 1_000).toFixed(1);
    stage.step(
      `The bank has charged; the worker is killed before it receives the response, with ${left} s of its lease left`,
    );

    const others = await stage.placeOrders(MEANWHILE);
    await stage.until('the other orders are charged', async () => {
      return (await stage.read(others)).charges.size === MEANWHILE;
    });
    const held = (await stage.read(wave)).inbox.payments.get(eventId);
    stage.step(`${MEANWHILE} more orders are placed, and charged`);
    stage.note(`the first is still ${held?.status}, under the claim of attempt ${held?.attempts}`);

    const readings = await stage.settle(1 + MEANWHILE);
    stage.step('The system has settled');
    const early = own().filter(({ granted, at }) => !granted && at < first.leaseUntil);
    stage.note(`receives of the message while it was leased, all refused: ${early.length}`);
    const later = own()
      .filter(({ granted }) => granted)
      .slice(1);
    stage.check(
      later.length > 0 && later.every(({ pid, at }) => pid !== first.pid && at > first.leaseUntil),
      'another worker took it over after the lease had expired, and not before',
    );
    const most = Math.max(...own().map(({ receives }) => receives));
    const allowed = await receivesAllowed(stage);
    stage.check(most < allowed, `SQS delivered it ${most} times; ${allowed} are allowed`);
    const asked = await stage.system.rows(`REQUEST#${aggregateId}`, stage.system.bankTableName);
    stage.check(
      asked.length > 1 && new Set(asked.map(({ idempotencyKey }) => idempotencyKey)).size === 1,
      'both workers called the bank, with one idempotency key',
    );
    stage.check(
      asked.slice(1).every(({ receivedAt }) => receivedAt > first.endsBy),
      'the second call came only after the function of the first worker had certainly stopped',
    );

    const naive = await stage.naive.rememberThenCharge();
    stage.note(
      'without Mailroom (remember the event, then charge): killed between the two, it treats the redelivered event as ' +
        `processed, ${naive.charges} charges`,
    );
    return countOrders(readings, 1 + MEANWHILE);
  },
};

async function receivesAllowed({ system }: Stage): Promise<number> {
  const { Attributes = {} } = await system.sqs.send(
    new GetQueueAttributesCommand({
      QueueUrl: required(system.outputs, 'PaymentsQueueUrl'),
      AttributeNames: ['RedrivePolicy'],
    }),
  );
  return Number(JSON.parse(Attributes.RedrivePolicy ?? '{}').maxReceiveCount);
}
