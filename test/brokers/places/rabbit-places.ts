import type { Arrived } from '../clients/arrived.ts';
import { type RabbitClient, rabbitClient } from '../clients/rabbit-client.ts';
import type { DebianPrograms } from '../servers/debian-packages.ts';
import { type RabbitBroker, startRabbit } from '../servers/rabbit-broker.ts';
import { deadOf, MESSAGE_MAX_BYTES, type Places } from './places.ts';

/** Running places of RabbitMQ. */
export interface RabbitPlaces extends Places, RabbitBroker {
  /** Runs on its own connection. */
  readonly connected: <T>(use: (client: RabbitClient) => Promise<T>) => Promise<T>;
}

/** @param name - names the broker's folder and log */
export async function startRabbitPlaces(programs: DebianPrograms, name: string): Promise<RabbitPlaces> {
  const broker = await startRabbit(programs, name, MESSAGE_MAX_BYTES);
  const { url } = broker;
  /** What was taken out of each queue. */
  const taken = new Map<string, Arrived[]>();
  const connected = async <T>(use: (client: RabbitClient) => Promise<T>) => {
    const client = await rabbitClient(broker);
    return await use(client).finally(client.close);
  };
  return {
    ...broker,
    connected,
    create: (queue) => connected(({ createQueue }) => createQueue(queue)),
    createSource: (queue) =>
      connected(async ({ createQueue }) => {
        await createQueue(deadOf(queue));
        const quorum = { 'x-queue-type': 'quorum' };
        await createQueue(queue, { deadLetterExchange: deadOf(queue), arguments: quorum });
      }),
    placeOf: (exchange) => ({ kind: 'rabbit', url, exchange }),
    deniedPlaceOf: (exchange) => ({ kind: 'rabbit', url: url.replace('guest@', 'wrong@'), exchange }),
    publish: (exchange, body) => connected(({ publish }) => publish(exchange, body)),
    arrived: async (queue) => {
      const all = [...(taken.get(queue) ?? []), ...(await connected(({ arrived }) => arrived(queue)))];
      taken.set(queue, all);
      return all;
    },
    waiting: (queue) => connected(async ({ channel }) => (await channel.checkQueue(queue)).messageCount),
  };
}
