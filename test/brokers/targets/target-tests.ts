import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { MESSAGE_MAX_BYTES, type Places } from '../places/places.ts';
import { report } from '../receipts.ts';
import { bridgeTo, countedAt } from './bridge.ts';
import { testDelivery } from './delivery-tests.ts';
import { targetOf } from './target-of.ts';

/** The parts in which the targets differ. */
export interface TargetCase<P extends Places> {
  /** The broker's name in receipts. */
  readonly broker: string;
  /** The reason why its tests are skipped, or undefined. */
  readonly isMissing: boolean;
  readonly start: () => Promise<P>;
  /** As for {@link testDelivery}. */
  readonly timesAfterCrash: 1 | 2;
  readonly errors: { readonly missing: RegExp; readonly denied: RegExp; readonly tooLarge: RegExp };
}

const EVENTS = 200;

/** What every target promises. Each test has its own topic, stream or exchange. */
export function describeTarget<P extends Places>(
  target: TargetCase<P>,
  more: (broker: () => P) => void,
): void {
  const { broker: name, isMissing, timesAfterCrash, errors } = target;
  describe.skipIf(isMissing)(`a bridge to ${name}`, () => {
    let broker: P;
    beforeAll(async () => {
      broker = await target.start();
    });
    afterAll(async () => await broker?.close());
    // A test that failed before it started the broker again fails alone.
    afterEach(async () => {
      if (broker.pid() === undefined) await broker.start();
    });
    const placeFor = async (place: string) => {
      await broker.create(place);
      return targetOf(broker.placeOf(place));
    };
    const arrivedAt = async (place: string) => (await broker.arrived(place)).map(countedAt);

    testDelivery(name, () => broker, timesAfterCrash);

    test('delivers everything although the broker is stopped and then killed', async (context) => {
      const bridge = bridgeTo(await placeFor('restarted'), 2_000);
      const sent = await bridge.publish(EVENTS, { aggregates: 10 });
      await bridge.deliver();
      await broker.stop();
      expect((await bridge.deliver()).join('\n')).toContain('BRIDGE_FAILED');
      await broker.start();
      const delivering = bridge.deliver();
      await broker.kill();
      await delivering;
      await broker.start();
      await bridge.settle();
      const receipt = await report(
        context,
        { broker: name, scenario: 'broker stopped, killed' },
        sent,
        await arrivedAt('restarted'),
      );
      expect(receipt).toMatchObject({ distinct: EVENTS, lost: 0 });
    });

    test('waits until a missing topic, stream or exchange is created', async (context) => {
      const bridge = bridgeTo(targetOf(broker.placeOf('missing')));
      const sent = await bridge.publish(3);
      const failures = await bridge.deliver();
      expect(failures).toHaveLength(3);
      for (const failure of failures) expect(failure).toMatch(errors.missing);
      await broker.create('missing');
      await bridge.settle();
      const receipt = await report(
        context,
        { broker: name, scenario: 'created later' },
        sent,
        await arrivedAt('missing'),
      );
      expect(receipt).toMatchObject({ received: 3, lost: 0 });
    });

    test('retries while its credentials are refused', async () => {
      await broker.create('denied');
      const bridge = bridgeTo(targetOf(broker.deniedPlaceOf('denied')));
      await bridge.publish(2);
      const failures = await bridge.deliver();
      expect(failures).toHaveLength(2);
      for (const failure of failures) expect(failure).toMatch(errors.denied);
      expect(bridge.rows().map(({ status }) => status)).toEqual(['FAILED', 'FAILED']);
      expect(await broker.arrived('denied')).toEqual([]);
    });

    test('rejects an event that is too large, and delivers the others of its batch', async (context) => {
      const bridge = bridgeTo(await placeFor('large'));
      const before = await bridge.publish(2);
      await bridge.publish(1, { filling: 'x'.repeat(MESSAGE_MAX_BYTES) });
      const after = await bridge.publish(2);
      expect((await bridge.deliver()).join('\n')).toMatch(errors.tooLarge);
      await bridge.settle();
      const receipt = await report(
        context,
        { broker: name, scenario: 'one is too large' },
        [...before, ...after],
        await arrivedAt('large'),
      );
      expect(receipt).toMatchObject({ sent: 4, distinct: 4, lost: 0 });
      expect(bridge.rows().filter(({ status }) => status === 'REJECTED')).toMatchObject([
        { reason: 'BRIDGE_REJECTED' },
      ]);
    });

    test('rejects a message without an envelope, and sends nothing of it', async (context) => {
      const bridge = bridgeTo(await placeFor('strange'));
      const sent = await bridge.publish(1);
      bridge.sendToQueue('no JSON');
      bridge.sendToQueue(JSON.stringify({ source: 'parcels', 'detail-type': 'ParcelPacked', detail: {} }));
      const failures = await bridge.deliver();
      expect(failures).toHaveLength(2);
      for (const failure of failures) expect(failure).toContain('UNREADABLE_MESSAGE');
      const receipt = await report(
        context,
        { broker: name, scenario: 'no envelope' },
        sent,
        await arrivedAt('strange'),
      );
      expect(receipt).toMatchObject({ received: 1, lost: 0 });
    });

    more(() => broker);
  });
}
