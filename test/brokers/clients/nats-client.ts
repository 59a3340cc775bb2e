import { type JetStreamManager, jetstream, jetstreamManager, type StreamConfig } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import type { NatsAddress } from '../servers/nats-broker.ts';
import type { Arrived } from './arrived.ts';

/** A client of NATS for tests. */
export interface NatsClient {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly createStream: (config: Partial<StreamConfig> & { name: string }) => Promise<void>;
  /** Publishes to a stream and waits for its answer. */
  readonly publish: (subject: string, body: string) => Promise<void>;
  /** Every message in a stream, in its order. */
  readonly arrived: (stream: string) => Promise<Arrived[]>;
  readonly close: () => Promise<void>;
}

/** Connects once: after a restart, make another one. */
export async function natsClient(address: NatsAddress): Promise<NatsClient> {
  const connection = await connect({ ...address, reconnect: false });
  const stream = jetstream(connection);
  const manager = await jetstreamManager(connection);
  return {
    connection,
    manager,
    createStream: async (config) => {
      await manager.streams.add({ subjects: [`${config.name}.>`], ...config });
    },
    publish: async (subject, body) => {
      await stream.publish(subject, body);
    },
    arrived: async (name) => {
      const { state } = await manager.streams.info(name);
      const messages: Arrived[] = [];
      for (let seq = state.first_seq; state.messages > 0 && seq <= state.last_seq; seq++) {
        const message = await manager.streams.getMessage(name, { seq });
        if (message === null) continue;
        const headers = Object.fromEntries(
          [...(message.header ?? [])].map(([key, [value = '']]) => [key, value]),
        );
        messages.push({ body: message.string(), headers, key: message.subject });
      }
      return messages;
    },
    close: async () => await connection.close(),
  };
}
