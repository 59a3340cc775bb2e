import { GetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import { required } from '../../../demo/readings.ts';
import { countOrders } from '../counts.ts';
import type { Act } from '../fault-proxy.ts';
import { killAfter } from '../faults.ts';
import { watchClaims } from '../inbox-calls.ts';
import type { Scenario } from '../scenario.ts';
import type { Stage } from '../stage.ts';

const MEANWHILE = 2;

/** Less than the lease, against the advice of synth: so the message comes again while its dead worker holds it. */
const HIDDEN_S = 5;

/** Receives that a message may need here: the first worker's, the one that finds the lease, and the one after it. */
const RECEIVES_MAX = 3;

/** A worker dies with a claim, after the bank has charged and before anybody knows; its message comes again too early. */
export const stuckClaim: Scenario = {
  name: 'stuck-claim',
  title: 'a worker dies in its handler, and its claim outlives it by ten seconds',
  run: async (stage) => {
    stage.step(
      `A claim is for 10 s, and the queue shows a message again after ${HIDDEN_S} s; an order is placed`,
    );
    await stage.hideFor('payments', HIDDEN_S);
    const tries = watchClaims(stage, 'payments', longFirstLease());
    stage.fault({ from: 'payments', action: 'Invoke', times: 1 }, killAfter(stage.system.kill));
    const wave = await stage.placeOrders(1);
    await stage.until('the bank charges', async () => (await stage.read(wave)).charges.size === 1);
    const { events, inbox } = await stage.read(wave);
    const { eventId = '', aggregateId = '' } =
      events.find(({ row }) => row.type === 'OrderPlaced')?.envelope ?? {};
    const leaseUntil = inbox.payments.get(eventId)?.leaseUntil ?? Number.NaN;
    const left = ((leaseUntil - Date.now()) / 1_000).toFixed(1);
    stage.step(
      `The bank has charged; the worker is killed before it hears so, with ${left} s of its lease left`,
    );

    const others = await stage.placeOrders(MEANWHILE);
    await stage.until('the other orders are charged', async () => {
      return (await stage.read(others)).charges.size === MEANWHILE;
    });
    const held = (await stage.read(wave)).inbox.payments.get(eventId);
    stage.step(`${MEANWHILE} orders more are placed, and charged`);
    stage.check(
      held?.status === 'PROCESSING' && held.leaseUntil === leaseUntil && leaseUntil > Date.now(),
      'they did not wait; the first is still in the hands of the dead worker',
    );

    const readings = await stage.settle(1 + MEANWHILE);
    stage.step('The system has come to rest');
    const own = tries.filter((tried) => tried.eventId === eventId);
    const [first, second] = own.filter(({ granted }) => granted);
    stage.check(
      own.some(({ granted, receives, at }) => !granted && receives > 1 && at < leaseUntil),
      'the message came again while it was leased, and was sent away',
    );
    stage.check(
      first !== undefined && second !== undefined && second.pid !== first.pid && second.at > leaseUntil,
      'another worker took it over when the lease had passed, and not before',
    );
    const most = Math.max(...own.map(({ receives }) => receives));
    stage.check(
      most <= RECEIVES_MAX,
      `SQS handed it out ${most} times; ${await receivesAllowed(stage)} are allowed`,
    );
    const asked = await stage.system.rows(`REQUEST#${aggregateId}`, stage.system.bankTableName);
    stage.check(
      asked.length === 2 && new Set(asked.map(({ idempotencyKey }) => idempotencyKey)).size === 1,
      'the bank was asked by both workers, under one key',
    );

    const naive = await stage.naive.rememberThenCharge();
    stage.note(
      'without Mailroom (remember the event, then charge): ended between the two, it takes the event for done when it ' +
        `comes again, ${naive.charges} charges`,
    );
    return countOrders(readings, 1 + MEANWHILE);
  },
};

/** The first claim holds for 10 s, as one with that lease would: to the end of its function's 10 s, and never past it. */
function longFirstLease(): Act {
  let isFirst = true;
  return (call, forward) => {
    if (!isFirst) return forward();
    isFirst = false;
    const values = call.body.ExpressionAttributeValues as Readonly<Record<string, unknown>>;
    return forward({
      ...call.body,
      ExpressionAttributeValues: { ...values, ':leaseUntil': values[':endsBy'] },
    });
  };
}

async function receivesAllowed({ system }: Stage): Promise<number> {
  const { Attributes = {} } = await system.sqs.send(
    new GetQueueAttributesCommand({
      QueueUrl: required(system.outputs, 'PaymentsQueueUrl'),
      AttributeNames: ['RedrivePolicy'],
    }),
  );
  return Number(JSON.parse(Attributes.RedrivePolicy ?? '{}').maxReceiveCount);
}
