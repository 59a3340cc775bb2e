import { type ChannelModel, type ConfirmChannel, connect, type Options } from 'amqplib';
import type { RabbitBroker } from '../servers/rabbit-broker.ts';
import type { Arrived } from './arrived.ts';

/** A client of RabbitMQ for tests. */
export interface RabbitClient {
  readonly connection: ChannelModel;
  readonly channel: ConfirmChannel;
  /** A durable queue, bound to a durable topic exchange of the same name. */
  readonly createQueue: (name: string, options?: Options.AssertQueue) => Promise<void>;
  /** Publishes a persistent message and waits until the broker confirms it; rejects if it refuses it. */
  readonly publish: (exchange: string, body: string) => Promise<void>;
  /** Takes every message out of a queue, in its order. */
  readonly arrived: (queue: string) => Promise<Arrived[]>;
  readonly close: () => Promise<void>;
}

/** Connects once: after a restart, make another one. */
export async function rabbitClient({ url }: Pick<RabbitBroker, 'url'>): Promise<RabbitClient> {
  const connection = await connect(url);
  // The end of the broker is not an error of the test.
  connection.on('error', () => {});
  const channel = await connection.createConfirmChannel();
  channel.on('error', () => {});
  return {
    connection,
    channel,
    createQueue: async (name, options) => {
      await channel.assertExchange(name, 'topic', { durable: true });
      await channel.assertQueue(name, { durable: true, ...options });
      await channel.bindQueue(name, name, '#');
    },
    publish: async (exchange, body) => {
      await new Promise<void>((resolve, reject) => {
        channel.publish(exchange, 'test', Buffer.from(body), { persistent: true }, (error) =>
          error ? reject(error) : resolve(),
        );
      });
    },
    arrived: async (queue) => {
      const messages: Arrived[] = [];
      for (;;) {
        const message = await channel.get(queue, { noAck: true });
        if (message === false) return messages;
        const { properties, fields, content } = message;
        const headers = Object.fromEntries(
          Object.entries(properties.headers ?? {}).map(([key, value]) => [key, String(value)]),
        );
        messages.push({ body: content.toString(), headers, key: fields.routingKey });
      }
    },
    close: async () => await connection.close().catch(() => {}),
  };
}
