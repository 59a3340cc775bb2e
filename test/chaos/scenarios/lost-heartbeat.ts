import type { WrittenEvent } from '../../../demo/readings.ts';
import { pause } from '../../../demo/shop.ts';
import { countOrders } from '../counts.ts';
import { answerWhen, cut, forwardWhen } from '../faults.ts';
import { type ClaimTry, commitFence, isRenew, messagesOf, watchClaims } from '../inbox-calls.ts';
import type { Scenario } from '../scenario.ts';
import type { Stage } from '../stage.ts';

/** One whose worker waits for the bank, and one whose worker is about to commit. */
const STUCK = 2;

/** Done meanwhile by the worker that takes over later: so its process runs by then. */
const MEANWHILE = 1;

/** After the end of the leases. */
const PAST_MS = 100;

/** No renewal of a worker arrives: another one takes its messages over, and then the first wants to commit. */
export const lostHeartbeat: Scenario = {
  name: 'lost-heartbeat',
  title: 'a worker cannot renew its lease, and another worker takes over',
  run: async (stage) => {
    stage.step(`one worker of payments receives ${STUCK} orders; no renewal of a lease arrives`);
    const renewals = stage.fault({ from: 'payments', action: 'UpdateItem', where: isRenew }, cut);
    const tries = watchClaims(stage, 'payments');
    const { wave, events, resume } = await heldUp(stage);
    const [atBank, atCommit] = events;
    let mayGoOn = false;
    const bankCall = stage.fault(
      {
        from: 'payments',
        action: 'Invoke',
        where: ({ body }) => body.orderId === atBank.envelope.aggregateId,
      },
      answerWhen(() => mayGoOn),
    );
    const commits = watchCommits(stage, tries, () => mayGoOn);
    await resume();
    await stage.until('the worker is in the middle of both', () => bankCall.hits > 0 && commits.begun() > 0);
    const firsts = tries.filter(({ granted }) => granted);

    stage.step('It waits for the bank with one order, and stalls right before it commits the other');
    await stage.placeOrders(MEANWHILE);
    await pause(Math.max(...firsts.map(({ leaseUntil }) => leaseUntil)) + PAST_MS - Date.now());
    stage.step(
      `Its leases have expired, ${renewals.hits} renewals were cut off; duplicates of both messages arrive`,
    );
    await Promise.all(events.map((event) => stage.deliver('payments', event, 1)));
    await stage.until('another worker has received both', async () => {
      const { inbox } = await stage.read(wave);
      const statusOf = ({ envelope }: WrittenEvent) => inbox.payments.get(envelope.eventId)?.status;
      return statusOf(atBank) === 'FAILED' && statusOf(atCommit) === 'PROCESSED';
    });
    stage.step(
      'Another worker has taken over both: it has committed one, and waits with the other; the first worker continues',
    );
    mayGoOn = true;

    const readings = await stage.settle(STUCK + MEANWHILE);
    stage.step('The system has settled');
    const [first] = firsts;
    const taken = tries.filter(({ granted, pid }) => granted && pid !== first?.pid);
    stage.check(
      firsts.length === STUCK &&
        firsts.every(({ pid }) => pid === first?.pid) &&
        firsts.every(({ eventId, leaseUntil }) =>
          taken.some((claim) => claim.eventId === eventId && claim.at > leaseUntil),
        ),
      'one worker held both, and another took both over when the leases had passed',
    );
    stage.check(
      commits.allRefused(firsts),
      `the first worker tried to commit both (${commits.begun()} calls), and was refused each time`,
    );
    const ofOrders = new Set(events.map(({ envelope }) => envelope.aggregateId));
    const captured = readings.events.filter(
      ({ row, envelope }) => row.type === 'PaymentCaptured' && ofOrders.has(envelope.aggregateId),
    );
    stage.check(captured.length === STUCK, `${captured.length} PaymentCaptured for the ${STUCK} orders`);

    const naive = await stage.naive.leaseThenCharge();
    stage.note(
      `without Mailroom (a lease without a fencing token): two workers had one message, ${naive.completed} completed it, ` +
        `${naive.charges} charges`,
    );
    return countOrders(readings, STUCK + MEANWHILE);
  },
};

/** Places the orders, and keeps their messages in the queue until both are there: so they come as one batch. */
async function heldUp(stage: Stage) {
  const resume = await stage.pauseMapping('payments');
  const wave = await stage.placeOrders(STUCK);
  await stage.until('both messages are in the queue', async () => {
    return (await messagesOf(stage.system, 'payments')).length === STUCK;
  });
  const placed = (await stage.read(wave)).events.filter(({ row }) => row.type === 'OrderPlaced');
  const [atBank, atCommit] = placed;
  if (atBank === undefined || atCommit === undefined) throw new Error('The orders have no events');
  return { wave, events: [atBank, atCommit] as const, resume };
}

/** Keeps the commits under the first worker's claims back until it may go on; the engine gets them then, however late. */
function watchCommits(stage: Stage, tries: readonly ClaimTry[], mayGoOn: () => boolean) {
  const refused: (string | undefined)[] = [];
  const isOfFirst = (fence: string | undefined) =>
    tries.slice(0, STUCK).some((claim) => claim.fence === fence);
  const fault = stage.fault(
    { from: 'payments', action: 'TransactWriteItems', where: (call) => isOfFirst(commitFence(call)) },
    async (call, forward) => {
      const answer = await forwardWhen(mayGoOn)(call, forward);
      if (answer?.status === 400 && answer.body.includes('ConditionalCheckFailed'))
        refused.push(commitFence(call));
      return answer;
    },
  );
  return {
    begun: () => fault.hits,
    /** Whether every one of them was refused, and there was one under each of the claims. */
    allRefused: (claims: readonly ClaimTry[]) =>
      refused.length === fault.hits && claims.every(({ fence }) => refused.includes(fence)),
  };
}
