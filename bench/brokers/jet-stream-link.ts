import { jetstream } from '@nats-io/jetstream';
import { connect, headers, type NatsConnection } from '@nats-io/transport-node';
import { jetStreamTarget } from '../../lambdas/runtime/bridge.ts';
import { consumeJetStream } from '../../lambdas/runtime/sources.ts';
import { type BrokerLink, type BrokerPlace, CONSUMER, noDeadLetter } from './broker-link.ts';

/** A stream of NATS. */
export function jetStreamLink({ name, address }: Extract<BrokerPlace, { broker: 'JetStream' }>): BrokerLink {
  const subject = `${name}.placed`;
  return {
    sender: async () => {
      const connection = await connect({ ...address });
      const stream = jetstream(connection);
      return {
        send: (messages) => Promise.all(messages.map(({ body }) => stream.publish(subject, body))),
        close: () => connection.close(),
      };
    },
    target: () => {
      const connections: NatsConnection[] = [];
      const to = jetStreamTarget({
        connect: async (servers) => {
          const connection = await connect({ ...address, servers });
          connections.push(connection);
          return connection;
        },
        jetstream,
        headers,
        subject,
        servers: address.servers,
      });
      return { to, close: async () => void (await Promise.all(connections.map((each) => each.close()))) };
    },
    consume: async (arrived) => {
      const connection = await connect({ ...address });
      const consumer = await jetstream(connection).consumers.get(name, CONSUMER);
      const messages = await consumer.consume();
      const consuming = (async () => {
        for await (const message of messages) {
          arrived();
          message.ack();
        }
      })();
      return async () => {
        await messages.close();
        await consuming;
        await connection.drain();
      };
    },
    loop: async (inbox, handler) => {
      const connection = await connect({ ...address });
      const consumer = await jetstream(connection).consumers.get(name, CONSUMER);
      const { stop } = await consumeJetStream({ consumer, inbox, handler, deadLetter: noDeadLetter });
      return async () => {
        await stop();
        await connection.drain();
      };
    },
  };
}
