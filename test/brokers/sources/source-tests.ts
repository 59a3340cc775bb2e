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
export interface SourceCase {
  /** The broker's name in receipts. */
  readonly broker: string;
  /** The reason why its tests are skipped, or undefined. */
  readonly isMissing: boolean;
  readonly start: () => Promise<Places>;
  /** True if a message waits for its predecessors. */
  readonly keepsOrder: boolean;
}

const EVENTS = 100;

/** Some minutes: the lease of a killed process has ended. */
const LATER_MS = 600_000;

/** What every source promises. Each test has its own topic, stream or queue. */
export function describeSource({ broker: name, isMissing, start, keepsOrder }: SourceCase): void {
  describe.skipIf(isMissing)(`a consumer of ${name}`, () => {
    const client = dynamoClient(inject('endpoint'));
    const tableName = `source-${randomUUID()}`;
    const table = dynamoTable({ client, tableName });
    let broker: Places;
    let dir: string;
    let running: SourceProcess | undefined;
    beforeAll(async () => {
      [broker, dir] = await Promise.all([start(), ownDir('source'), createTable(client, tableName)]);
    });
    afterEach(async () => {
      await running?.stop();
      if (broker.pid() === undefined) await broker.start();
    });
    afterAll(async () => {
      await broker?.close();
      if (dir) await rm(dir, { recursive: true });
    });

    /** Creates a place with events that a bridge has sent to it. */
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
      running = await startSource(dir, process);
      return running;
    };
    /** How often the writes of each event were made. */
    const runsOf = (events: readonly Counted[]) =>
      Promise.all(
        events.map(async ({ id }) => {
          const item = await table.get({ PK: `EFFECT#${id}`, SK: 'EFFECT' }, { consistent: true });
          return Number(item?.runs ?? 0);
        }),
      );
    /** Waits until the writes of all events are made and all messages are acknowledged, and stops the process. */
    const finish = async (place: string, sent: readonly Counted[], source: SourceProcess) => {
      await eventually(async () => {
        expect(source.hasEnded()).toBe(false);
        expect(await runsOf(sent)).not.toContain(0);
      }, 60_000);
      await eventually(async () => expect(await broker.waiting(place)).toBe(0));
      expect(await source.stop()).toBe(0);
      expect(await broker.waiting(place)).toBe(0);
    };
    const reportRuns = async (
      context: TestContext,
      scenario: string,
      sent: readonly Counted[],
      ...processes: readonly SourceProcess[]
    ) => {
      expect(new Set(await runsOf(sent))).toEqual(new Set([1]));
      const handled = processes.flatMap((process) => process.handled());
      return await report(context, { broker: `from ${name}`, scenario }, sent, handled);
    };

    test('processes each event once', async (context) => {
      const sent = await placeWith('usual', EVENTS);
      const source = await startOf('usual');
      await finish('usual', sent, source);
      const receipt = await reportRuns(context, 'nothing fails', sent, source);
      expect(receipt).toMatchObject({ received: EVENTS, distinct: EVENTS, lost: 0 });
      if (keepsOrder) expect(receipt.outOfOrder).toBe(0);
    });

    test('runs no handler again if it is killed before it acknowledges a processed message', async (context) => {
      const sent = await placeWith('unacknowledged', 5);
      const first = await startOf('unacknowledged', { killed: 'before-ack' });
      expect(await first.ended()).toBe('SIGKILL');
      const second = await startOf('unacknowledged', { laterMs: LATER_MS });
      await finish('unacknowledged', sent, second);
      const receipt = await reportRuns(context, 'killed before the ack', sent, first, second);
      expect(receipt).toMatchObject({ distinct: 5, lost: 0 });
      if (keepsOrder) expect(receipt).toMatchObject({ received: 5, outOfOrder: 0 });
    });

    test('runs the handler again if it is killed in it', async (context) => {
      const sent = await placeWith('killed', 5);
      const first = await startOf('killed', { killed: 'in-handler' });
      expect(await first.ended()).toBe('SIGKILL');
      const second = await startOf('killed', { laterMs: LATER_MS });
      await finish('killed', sent, second);
      const receipt = await reportRuns(context, 'killed in a handler', sent, first, second);
      expect(receipt).toMatchObject({ distinct: 5, lost: 0 });
      expect(receipt.received).toBeGreaterThan(5);
    });

    test('processes each event once although the broker is killed and the process is started again', async (context) => {
      const sent = await placeWith('restarted', EVENTS);
      const processes = [await startOf('restarted')];
      await eventually(async () => expect(processes[0]?.handled()).not.toEqual([]));
      await broker.kill();
      await broker.start();
      await eventually(async () => {
        // A supervisor starts it again.
        if (processes.at(-1)?.hasEnded()) processes.push(await startOf('restarted'));
        expect(await runsOf(sent)).not.toContain(0);
      }, 60_000);
      if (processes.at(-1)?.hasEnded()) processes.push(await startOf('restarted'));
      await finish('restarted', sent, processes.at(-1) as SourceProcess);
      const receipt = await reportRuns(context, 'broker killed', sent, ...processes);
      expect(receipt).toMatchObject({ distinct: EVENTS, lost: 0 });
    });

    test('retries an event that fails, and processes the others', async (context) => {
      const sent = await placeWith('failing', 10);
      const source = await startOf('failing', { failsOnce: 1 });
      await finish('failing', sent, source);
      const receipt = await reportRuns(context, 'a handler fails once', sent, source);
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
      const source = await startOf('strange');
      await finish('strange', sent, source);
      const receipt = await reportRuns(context, 'no envelope', sent, source);
      expect(receipt).toMatchObject({ received: 3, lost: 0 });
      expect(bodiesOf(await broker.arrived(deadOf('strange'))).sort()).toEqual(['no JSON', '{"data":1}']);
    });
  });
}
