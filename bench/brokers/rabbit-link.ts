import { type ChannelModel, connect } from 'amqplib';
import { rabbitTarget } from '../../lambdas/runtime/bridge.ts';
import { consumeRabbit } from '../../lambdas/runtime/sources.ts';
import { type BrokerLink, type BrokerPlace, CONCURRENCY, noDeadLetter } from './broker-link.ts';

/** An exchange of RabbitMQ with the queue of the same name. */
export function rabbitLink({ name, url }: Extract<BrokerPlace, { broker: 'RabbitMQ' }>): BrokerLink {
  return {
    sender: async () => {
      const connection = await connect(url);
      const channel = await connection.createConfirmChannel();
      const sendOne = (body: string) =>
        new Promise<void>((resolve, reject) => {
          channel.publish(name, 'placed', Buffer.from(body), { persistent: true }, (error) =>
            error ? reject(error) : resolve(),
          );
        });
      return {
        send: (messages) => Promise.all(messages.map(({ body }) => sendOne(body))),
        close: () => connection.close(),
      };
    },
    target: () => {
      const connections: ChannelModel[] = [];
      const to = rabbitTarget({
        connect: async (address) => {
          const connection = await connect(address);
          connections.push(connection);
          return connection;
        },
        exchange: name,
        url,
      });
      return { to, close: async () => void (await Promise.all(connections.map((each) => each.close()))) };
    },
    consume: async (arrived) => {
      const connection = await connect(url);
      const channel = await connection.createChannel();
      await channel.prefetch(CONCURRENCY);
      await channel.consume(name, (message) => {
        if (message === null) return;
        arrived();
        channel.ack(message);
      });
      return async () => {
        await channel.close();
        await connection.close();
      };
    },
    loop: async (inbox, handler) => {
      const connection = await connect(url);
      const { stop } = await consumeRabbit({
        connection,
        queue: name,
        concurrency: CONCURRENCY,
        inbox,
        handler,
        deadLetter: noDeadLetter,
      });
      return async () => {
        await stop();
        await connection.close();
      };
    },
  };
}
