import { pause } from '../../../demo/shop.ts';
import { countOrders } from '../counts.ts';
import type { Call } from '../fault-proxy.ts';
import { cut, killAfter, refuse, THROTTLED } from '../faults.ts';
import type { Scenario } from '../scenario.ts';
import type { Stage } from '../stage.ts';
import { LATE_MS } from '../timings.ts';

const ORDERS = 5;
const NAIVE_EVENTS = 1;

/** The relay's process is killed at its two worst moments: with a claim and no publish, with a publish and no mark. */
export const relayKilled: Scenario = {
  name: 'relay-killed',
  title: 'the stream relay is killed between claim and publish, and between publish and mark',
  run: async (stage) => {
    stage.step(`The stream is paused until ${ORDERS} events are late, so that the relay claims them first`);
    const resume = await stage.pauseMapping('relay-stream');
    const sweepAgain = stage.holdSweep();
    const claimed = await stage.placeOrders(ORDERS);
    await pause(LATE_MS);
    // What comes after it waits until we have seen what it left behind.
    let isHeld = false;
    const successors = stage.fault({ from: 'relay-stream', where: () => isHeld }, refuse(THROTTLED));
    const beforePublish = stage.fault(
      { from: 'relay-stream', action: 'PutEvents', times: 1 },
      async ({ pid }) => {
        isHeld = true;
        await stage.system.kill(pid);
        return undefined;
      },
    );
    const leases = await leasesOf(stage, claimed);
    await resume();
    await stage.until('the relay is about to publish', () => beforePublish.hits === 1);
    stage.step('The relay has claimed them and is about to publish: its process is killed');
    const left = (await stage.read(claimed)).events;
    stage.check(
      left.length === ORDERS &&
        left.every(({ row }) => row.status === 'PENDING' && row.leaseUntil > (leases.get(row.SK) ?? 0)),
      'its events are PENDING, under the lease of the killed process',
    );
    successors.remove();
    sweepAgain();

    stage.step(`${ORDERS} more orders are placed`);
    const isOfLeft = ({ body }: Call) =>
      left.some(({ envelope }) => JSON.stringify(body).includes(envelope.eventId));
    const afterPublish = stage.fault(
      { from: 'relay-stream', action: 'PutEvents', where: (call) => !isOfLeft(call), times: 1 },
      killAfter(stage.system.kill),
    );
    const published = await stage.placeOrders(ORDERS);
    await stage.until('the relay has published', () => afterPublish.hits === 1);
    stage.step('The bus has accepted their events, and no row is marked yet: the process is killed');

    const readings = await stage.settle(2 * ORDERS);
    stage.step('The system has settled');
    const again = async (wave: string) =>
      (await stage.read(wave)).events
        .filter(({ row }) => row.type === 'OrderPlaced')
        .filter(({ envelope }) => stage.system.journal.timesPublished(envelope.eventId) > 1).length;
    stage.note(
      `of the events that were claimed but not published, ${await again(claimed)} were published more than once`,
    );
    const absorbed = await again(published);
    stage.check(
      absorbed > 0,
      `the ${absorbed} events that were published but not marked were published again; the inboxes absorbed them`,
    );

    stage.fault({ from: 'naive', action: 'PutEvents' }, cut);
    const naive = await stage.naive.markThenPublish(NAIVE_EVENTS);
    stage.note(
      `without Mailroom (mark, then publish): killed between the two, ${naive.done} marked and ${naive.lost} lost`,
    );
    return countOrders(readings, 2 * ORDERS);
  },
};

async function leasesOf(stage: Stage, wave: string): Promise<ReadonlyMap<string, number>> {
  const { events } = await stage.read(wave);
  return new Map(events.map(({ row }) => [row.SK, row.leaseUntil]));
}
