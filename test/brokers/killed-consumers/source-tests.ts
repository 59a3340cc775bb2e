import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { systemClock } from '../../../lambdas/runtime/base/clock.ts';
import { createOutbox, dynamoTable } from '../../../lambdas/runtime/index.ts';
import { poll } from '../../../localstack/health.ts';
import { memoryTelemetry } from '../../../testing/index.ts';
import { createTable, dynamoClient } from '../../support/aws.ts';
import { envelopeOf } from '../../support/envelope-of.ts';
import { idsOf, report } from '../receipts.ts';
import type { Broker } from '../servers/broker.ts';
import { EFFECTS, ParcelPacked, sourceConfig } from './parcels.ts';
import { type RunningProcess, type SourcePlace, startSource } from './source-process.ts';

/** A killed process keeps its messages for the ack wait or the session, and its leases. */
const DEADLINE_MS = 120_000;

/** The events of a test. */
const EVENTS = 24;

/** A body that no Mailroom wrote. */
const POISON = 'not an envelope';

/** A broker whose messages a process consumes. */
export interface SourceBroker extends Broker {
  /** Creates a topic, stream or queue, and the place of its dead letters. */
  readonly create: (name: string) => Promise<SourcePlace>;
  readonly publish: (name: string, body: string) => Promise<void>;
  /** The bodies of the dead letters. */
  readonly dead: (name: string) => Promise<string[]>;
  /** The messages that are not acknowledged or committed. */
  readonly left: (name: string) => Promise<number>;
}

/** The options of {@link describeSource}. */
interface SourceOptions {
  readonly broker: string;
  readonly isMissing: boolean;
  readonly start: () => Promise<SourceBroker>;
}

/** The tests of every source. */
export function describeSource({ broker, isMissing, start }: SourceOptions): void {
  describe.skipIf(isMissing)(`consumers of ${broker}`, () => {
    let started: SourceBroker;
    const endpoint = () => inject('endpoint');
    beforeAll(async () => {
      started = await start();
    });
    afterAll(async () => await started?.close());

    test('killed between a handler and its acknowledgement, lose nothing and double nothing', async (context) => {
      const tableName = `source-${randomUUID()}`;
      const client = dynamoClient(endpoint());
      const remove = await createTable(client, tableName);
      const table = dynamoTable({ client, tableName });
      const applied = async () => {
        const { items } = await table.query({ pk: EFFECTS, consistent: true });
        return items.map(({ SK, n }) => ({ id: String(SK), n: Number(n) }));
      };
      let last: RunningProcess | undefined;
      try {
        const place = await started.create('killed');
        const outbox = createOutbox({
          config: { ...sourceConfig, tableName },
          table,
          clock: systemClock,
          telemetry: memoryTelemetry(),
        });
        const ids: string[] = [];
        for (let n = 0; n < EVENTS; n += 1) {
          const [entry] = await outbox.entries([
            ParcelPacked.create({ aggregateId: `parcel-${n}`, data: { n } }),
          ]);
          const envelope = envelopeOf(entry?.Put.Item);
          ids.push(envelope.eventId);
          await started.publish('killed', JSON.stringify(envelope));
          if (n === 5) await started.publish('killed', POISON);
        }
        const source = { place, endpoint: endpoint(), tableName };
        for (const killedAfter of [1, 5])
          expect(await startSource({ ...source, killedAfter }).ended).toBe('SIGKILL');
        last = startSource(source);
        const done = poll(DEADLINE_MS, async () => {
          const isEmpty = (await started.left('killed')) === 0;
          return (isEmpty && (await applied()).length === EVENTS) || undefined;
        });
        const end = await Promise.race([done, last.ended]);
        expect(end).toBe(true);
        expect(await last.stop()).toBe(0);

        const effects = await applied();
        expect(effects.filter(({ n }) => n !== 1)).toEqual([]);
        const scenario = { broker, scenario: 'source: consumer killed' };
        const received = effects.flatMap(({ id, n }) => Array<string>(n).fill(id));
        const receipt = await report(context, scenario, idsOf(...ids), idsOf(...received));
        expect(receipt).toMatchObject({ sent: EVENTS, received: EVENTS, distinct: EVENTS, lost: 0 });
        expect(new Set(await started.dead('killed'))).toEqual(new Set([POISON]));
      } finally {
        last?.kill();
        await remove();
      }
    });
  });
}
