import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { createTable, dynamoClient } from '../../support/aws.ts';
import { MESSAGE_MAX_BYTES, type Places } from '../places/places.ts';
import { report } from '../receipts.ts';
import { ownDir } from '../servers/broker-files.ts';
import { bridgeTo, countedAt } from './bridge.ts';
import { invokeBridge, recordOf } from './bridge-invocation.ts';
import { targetOf } from './target-of.ts';

/** The parts in which the targets differ. */
export interface TargetCase<P extends Places> {
  /** The broker's name in receipts. */
  readonly broker: string;
  /** The reason why its tests are skipped, or undefined. */
  readonly isMissing: boolean;
  readonly start: () => Promise<P>;
  /** How often an event is at the target that was sent twice: 1 if the target drops duplicates. */
  readonly timesAfterCrash: 1 | 2;
  readonly errors: { readonly missing: RegExp; readonly denied: RegExp; readonly tooLarge: RegExp };
}

const EVENTS = 200;

/** Some minutes: the lease of a killed process has ended. */
const LATER_MS = 600_000;

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

    test('delivers each event once', async (context) => {
      const bridge = bridgeTo(await placeFor('usual'));
      const sent = await bridge.publish(EVENTS, { aggregates: 10 });
      await bridge.settle();
      const receipt = await report(
        context,
        { broker: name, scenario: 'nothing fails' },
        sent,
        await arrivedAt('usual'),
      );
      expect(receipt).toMatchObject({ sent: EVENTS, received: EVENTS, distinct: EVENTS, lost: 0 });
    });

    test('sends an event again if its process is killed before the row says that the target has it', async (context) => {
      const place = broker.placeOf('crash');
      await broker.create('crash');
      const { publish, bodies } = bridgeTo(targetOf(place));
      const sent = await publish(1);
      const [body = ''] = bodies();
      const dir = await ownDir('bridge');
      const endpoint = inject('endpoint');
      const tableName = `bridge-${randomUUID()}`;
      const remove = await createTable(dynamoClient(endpoint), tableName);
      try {
        const invocation = { endpoint, tableName, place };
        const killed = await invokeBridge(dir, { ...invocation, record: recordOf(body, 1), isKilled: true });
        expect(killed).toBe('SIGKILL');
        expect(await arrivedAt('crash')).toHaveLength(1);
        const again = { ...invocation, record: recordOf(body, 2), laterMs: LATER_MS };
        expect(await invokeBridge(dir, again)).toEqual({ batchItemFailures: [] });
      } finally {
        await remove();
        await rm(dir, { recursive: true });
      }
      const receipt = await report(
        context,
        { broker: name, scenario: 'killed after the send' },
        sent,
        await arrivedAt('crash'),
      );
      expect(receipt).toMatchObject({ received: timesAfterCrash, distinct: 1, lost: 0 });
    });

    test('delivers everything although the broker is stopped and then killed', async (context) => {
      const bridge = bridgeTo(await placeFor('restarted'), 2_000);
      const sent = await bridge.publish(EVENTS, { aggregates: 10 });
      await bridge.deliver();
      await broker.stop();
      expect((await bridge.deliver()).join('\n')).toContain('FORWARD_FAILED');
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
        { reason: 'FORWARD_REJECTED' },
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
