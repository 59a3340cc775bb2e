import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, inject, type TestContext, test } from 'vitest';
import { dynamoTable } from '../../../lambdas/runtime/index.ts';
import { eventually } from '../../local/support/eventually.ts';
import { createTable, dynamoClient } from '../../support/aws.ts';
import { bodiesOf } from '../clients/arrived.ts';
import { deadOf, type Places } from '../places/places.ts';
import { type Counted, report } from '../receipts.ts';
import { ownDir } from '../servers/broker-files.ts';
import { bridgeTo } from '../targets/bridge.ts';
import { targetOf } from '../targets/target-of.ts';
import { type SourceProcess, type SourceProcessOptions, startSource } from './source-process.ts';

/** The parts in which the sources differ. */
export interface SourceCase<P extends Places> {
  /** The broker's name in receipts. */
  readonly broker: string;
  /** The reason why its tests are skipped, or undefined. */
  readonly isMissing: boolean;
  readonly start: () => Promise<P>;
  /** True if a message waits for its predecessors. */
  readonly keepsOrder: boolean;
}

const EVENTS = 100;

/** What every source promises. Each test has its own topic, stream or queue. @param more - additional tests for this source */
export function describeSource<P extends Places>(
  { broker: name, isMissing, start, keepsOrder }: SourceCase<P>,
  more: (broker: () => P) => void = () => {},
): void {
  describe.skipIf(isMissing)(`a consumer of ${name}`, () => {
    const client = dynamoClient(inject('endpoint'));
    const tableName = `source-${randomUUID()}`;
    const table = dynamoTable({ client, tableName });
    let broker: P;
    let dir: string;
    /** The processes of a test. */
    let processes: SourceProcess[] = [];
    beforeAll(async () => {
      [broker, dir] = await Promise.all([start(), ownDir('source'), createTable(client, tableName)]);
    });
    afterEach(async () => {
      await processes.at(-1)?.stop();
      processes = [];
      if (broker.pid() === undefined) await broker.start();
    });
    afterAll(async () => {
      await broker?.close();
      if (dir) await rm(dir, { recursive: true });
    });

    /** Creates a topic, stream or queue with events that a bridge has sent to it. */
    const placeWith = async (place: string, count: number) => {
      await broker.createSource(place);
      const bridge = bridgeTo(targetOf(broker.placeOf(place)));
      const sent = await bridge.publish(count, { aggregates: 5 });
      await bridge.settle();
      return sent;
    };
    const startOf = async (place: string, options: Partial<SourceProcessOptions> = {}) => {
      const endpoint = inject('endpoint');
      const process = { endpoint, tableName, name: place, place: broker.placeOf(place), ...options };
      const started = await startSource(dir, process);
      processes.push(started);
      return started;
    };
    /** How often the writes of each event were made. */
    const runsOf = (events: readonly Counted[]) =>
      Promise.all(
        events.map(async ({ id }) => {
          const item = await table.get({ PK: `EFFECT#${id}`, SK: 'EFFECT' }, { consistent: true });
          return Number(item?.runs ?? 0);
        }),
      );
    /**
     * Waits until the writes of all events are made and all messages are acknowledged, and stops the process. RabbitMQ does not tell
     * which messages a process holds: if some return to the queue, another process goes on.
     *
     * @param isSupervised - a process that ended is started again
     */
    const finish = async (place: string, sent: readonly Counted[], isSupervised = false) => {
      await eventually(async () => {
        if (isSupervised && processes.at(-1)?.hasEnded()) await startOf(place);
        expect(processes.at(-1)?.hasEnded()).toBe(false);
        expect(await runsOf(sent)).not.toContain(0);
        expect(await broker.waiting(place)).toBe(0);
      }, 60_000);
      expect(await processes.at(-1)?.stop()).toBe(0);
      if ((await broker.waiting(place)) === 0) return;
      await startOf(place);
      await finish(place, sent);
    };
    const reportRuns = async (context: TestContext, scenario: string, sent: readonly Counted[]) => {
      expect(new Set(await runsOf(sent))).toEqual(new Set([1]));
      const handled = processes.flatMap((process) => process.handled());
      return await report(context, { broker: `from ${name}`, scenario }, sent, handled);
    };

    test('processes each event once', async (context) => {
      const sent = await placeWith('usual', EVENTS);
      await startOf('usual');
      await finish('usual', sent);
      const receipt = await reportRuns(context, 'nothing fails', sent);
      expect(receipt).toMatchObject({ received: EVENTS, distinct: EVENTS, lost: 0 });
      if (keepsOrder) expect(receipt.outOfOrder).toBe(0);
    });

    test('runs no handler again if it is killed before it acknowledges a processed message', async (context) => {
      const sent = await placeWith('unacknowledged', 5);
      const first = await startOf('unacknowledged', { killed: 'before-ack' });
      expect(await first.ended()).toBe('SIGKILL');
      await startOf('unacknowledged');
      await finish('unacknowledged', sent);
      const receipt = await reportRuns(context, 'killed before the ack', sent);
      expect(receipt).toMatchObject({ distinct: 5, lost: 0 });
      if (keepsOrder) expect(receipt).toMatchObject({ received: 5, outOfOrder: 0 });
    });

    test('runs the handler again if it is killed in it', async (context) => {
      const sent = await placeWith('killed', 5);
      const first = await startOf('killed', { killed: 'in-handler' });
      expect(await first.ended()).toBe('SIGKILL');
      await startOf('killed');
      await finish('killed', sent);
      const receipt = await reportRuns(context, 'killed in a handler', sent);
      expect(receipt).toMatchObject({ distinct: 5, lost: 0 });
      expect(receipt.received).toBeGreaterThan(5);
    });

    test('processes each event once although the broker is killed and the process is started again', async (context) => {
      const sent = await placeWith('restarted', EVENTS);
      const first = await startOf('restarted');
      await eventually(async () => expect(first.handled()).not.toEqual([]));
      await broker.kill();
      await broker.start();
      await finish('restarted', sent, true);
      const receipt = await reportRuns(context, 'broker killed', sent);
      expect(receipt).toMatchObject({ distinct: EVENTS, lost: 0 });
    });

    test('retries an event that fails, and processes the others', async (context) => {
      const sent = await placeWith('failing', 10);
      await startOf('failing', { failsOnce: 1 });
      await finish('failing', sent);
      const receipt = await reportRuns(context, 'a handler fails once', sent);
      expect(receipt).toMatchObject({ received: 11, distinct: 10, lost: 0 });
      if (keepsOrder) expect(receipt.outOfOrder).toBe(0);
    });

    test('keeps a message without an envelope as a dead letter, and goes on', async (context) => {
      await broker.createSource('strange');
      await broker.publish('strange', 'no JSON');
      await broker.publish('strange', '{"data":1}');
      const bridge = bridgeTo(targetOf(broker.placeOf('strange')));
      const sent = await bridge.publish(3);
      await bridge.settle();
      await startOf('strange');
      await finish('strange', sent);
      const receipt = await reportRuns(context, 'no envelope', sent);
      expect(receipt).toMatchObject({ received: 3, lost: 0 });
      expect(bodiesOf(await broker.arrived(deadOf('strange'))).sort()).toEqual(['no JSON', '{"data":1}']);
    });

    more(() => broker);
  });
}
