import { inject } from 'vitest';
import { bodiesOf } from '../clients/arrived.ts';
import { rabbitClient } from '../clients/rabbit-client.ts';
import { startRabbit } from '../servers/rabbit-broker.ts';
import { deadOf } from './parcels.ts';
import { describeSource, type SourceBroker } from './source-tests.ts';

const debian = inject('debian');

async function start(): Promise<SourceBroker> {
  if (debian === undefined) throw new Error('The tests are skipped.');
  const broker = await startRabbit(debian, 'rabbit-source');
  const { createQueue, channel, publish, arrived, close } = await rabbitClient(broker);
  return {
    ...broker,
    close: async () => {
      await close();
      await broker.close();
    },
    create: async (queue) => {
      await createQueue(deadOf(queue));
      await createQueue(queue, {
        arguments: { 'x-queue-type': 'quorum' },
        deadLetterExchange: deadOf(queue),
      });
      return { kind: 'rabbit', url: broker.url, queue };
    },
    publish,
    dead: async (queue) => bodiesOf(await arrived(deadOf(queue))),
    // The messages that are ready: those that a consumer holds have no effect yet, or are acknowledged when it stops.
    left: async (queue) => (await channel.checkQueue(queue)).messageCount,
  };
}

describeSource({ broker: 'RabbitMQ', isMissing: debian === undefined, start });
