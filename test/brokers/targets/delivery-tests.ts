import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { expect, inject, test } from 'vitest';
import { eventually } from '../../local/support/eventually.ts';
import { createTable, dynamoClient } from '../../support/aws.ts';
import type { Places } from '../places/places.ts';
import { type Counted, report } from '../receipts.ts';
import { ownDir } from '../servers/broker-files.ts';
import { bridgeTo, countedAt } from './bridge.ts';
import { invokeBridge, recordOf } from './bridge-invocation.ts';
import { targetOf } from './target-of.ts';

const EVENTS = 200;

/** Some minutes: the lease of a killed process has ended. */
const LATER_MS = 600_000;

/**
 * The tests of every target, also of those on a local AWS.
 *
 * @param broker - its name in receipts
 * @param timesAfterCrash - how often an event is at the target that was sent twice: 1 if the target drops duplicates
 */
export function testDelivery(
  broker: string,
  places: () => Pick<Places, 'create' | 'placeOf' | 'arrived'>,
  timesAfterCrash: 1 | 2,
): void {
  /** Waits until a given number of events have arrived, and returns them. */
  const arrivedAt = (name: string, count: number): Promise<Counted[]> =>
    eventually(async () => {
      const arrived = await places().arrived(name);
      expect(arrived.length).toBeGreaterThanOrEqual(count);
      return arrived.map(countedAt);
    });

  test('delivers each event once', async (context) => {
    await places().create('usual');
    const bridge = bridgeTo(targetOf(places().placeOf('usual')));
    const sent = await bridge.publish(EVENTS, { aggregates: 10 });
    await bridge.settle();
    const scenario = { broker, scenario: 'nothing fails' };
    const receipt = await report(context, scenario, sent, await arrivedAt('usual', EVENTS));
    expect(receipt).toMatchObject({ sent: EVENTS, received: EVENTS, distinct: EVENTS, lost: 0 });
  });

  test('delivers an event of each of two bridges', async (context) => {
    await places().create('shared');
    const to = targetOf(places().placeOf('shared'));
    const [one, other] = [bridgeTo(to), bridgeTo(to, undefined, undefined, 'other-bridge')];
    const sent = await one.publish(3);
    for (const body of one.bodies()) other.sendToQueue(body);
    await one.settle();
    await other.settle();
    const scenario = { broker, scenario: 'two bridges' };
    const receipt = await report(context, scenario, sent, await arrivedAt('shared', 6));
    expect(receipt).toMatchObject({ received: 6, distinct: 3, lost: 0 });
  });

  test('sends an event again if its process is killed before the row says that the target has it', async (context) => {
    await places().create('crash');
    const place = places().placeOf('crash');
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
      expect(await arrivedAt('crash', 1)).toHaveLength(1);
      const again = { ...invocation, record: recordOf(body, 2), laterMs: LATER_MS };
      expect(await invokeBridge(dir, again)).toEqual({ batchItemFailures: [] });
    } finally {
      await remove();
      await rm(dir, { recursive: true });
    }
    const scenario = { broker, scenario: 'killed after the send' };
    const receipt = await report(context, scenario, sent, await arrivedAt('crash', timesAfterCrash));
    expect(receipt).toMatchObject({ received: timesAfterCrash, distinct: 1, lost: 0 });
  });
}
