import { countOrders } from '../counts.ts';
import type { Scenario } from '../scenario.ts';

const ORDERS = 5;

/** The stream's mapping is disabled while events are written, and comes back with all of them when they are old. */
export const streamGap: Scenario = {
  name: 'stream-gap',
  title: 'the stream delivers nothing, and then everything too late',
  run: async (stage) => {
    stage.step(`The stream's mapping is disabled; ${ORDERS} orders are placed`);
    const resume = await stage.pauseMapping('relay-stream');
    const wave = await stage.placeOrders(ORDERS);
    const placed = async (status?: string) =>
      (await stage.read(wave)).events.filter(
        ({ row }) => row.type === 'OrderPlaced' && (status === undefined || row.status === status),
      );
    stage.note(`${(await placed('PENDING')).length} of their events are PENDING`);

    await stage.until('the sweep publishes the events', async () => {
      return (await placed('PUBLISHED')).length === ORDERS;
    });
    stage.step('The born leases have expired: the events are PUBLISHED');
    stage.check(
      (await placed()).every(({ row }) => row.publishedBy === 'sweep'),
      'the sweep published them',
    );

    stage.step(
      'The mapping is enabled: the stream delivers events that are already published, then one more order',
    );
    await resume();
    await stage.placeOrders(1);
    const readings = await stage.settle(ORDERS + 1);
    const rescued = await placed();
    stage.check(
      rescued.every(({ row }) => row.publishedBy === 'sweep') &&
        rescued.every(
          ({ envelope }) => stage.system.journal.timesPublished(envelope.eventId, 'relay-stream') === 0,
        ),
      'the stream published none of them a second time',
    );
    return countOrders(readings, ORDERS + 1);
  },
};
