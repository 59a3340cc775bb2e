import { AckPolicy } from '@nats-io/jetstream';
import { inject } from 'vitest';
import { bodiesOf } from '../clients/arrived.ts';
import { type NatsClient, natsClient } from '../clients/nats-client.ts';
import { startNats } from '../servers/nats-broker.ts';
import { deadOf } from './parcels.ts';
import { describeSource, type SourceBroker } from './source-tests.ts';

const debian = inject('debian');

async function start(): Promise<SourceBroker> {
  const broker = await startNats(debian?.natsServer ?? '', 'nats-source');
  const client: NatsClient = await natsClient(broker.address);
  return {
    ...broker,
    close: async () => {
      await client.close();
      await broker.close();
    },
    create: async (stream) => {
      await client.createStream({ name: stream });
      await client.createStream({ name: deadOf(stream), subjects: [deadOf(stream)] });
      await client.manager.consumers.add(stream, {
        durable_name: 'worker',
        ack_policy: AckPolicy.Explicit,
        ack_wait: 2_000_000_000,
        max_ack_pending: 4,
      });
      return { kind: 'jet-stream', address: broker.address, stream };
    },
    publish: (stream, body) => client.publish(`${stream}.packed`, body),
    dead: async (stream) => bodiesOf(await client.arrived(deadOf(stream))),
    left: async (stream) => {
      const { num_pending: pending, num_ack_pending: unacknowledged } = await client.manager.consumers.info(
        stream,
        'worker',
      );
      return pending + unacknowledged;
    },
  };
}

describeSource({ broker: 'NATS', isMissing: debian === undefined, start });
