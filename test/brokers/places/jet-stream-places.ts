import { AckPolicy } from '@nats-io/jetstream';
import { type NatsClient, natsClient } from '../clients/nats-client.ts';
import { type NatsBroker, startNats } from '../servers/nats-broker.ts';
import { CONSUMER, deadOf, MESSAGE_MAX_BYTES, type Places } from './places.ts';

/** A message of a killed process is delivered again after this time, milliseconds. */
const ACK_WAIT_MS = 2_000;

/** @param name - names the broker's folder and log */
export async function startJetStreamPlaces(program: string, name: string): Promise<Places & NatsBroker> {
  const broker = await startNats(program, name);
  const { address } = broker;
  const connected = async <T>(use: (client: NatsClient) => Promise<T>) => {
    const client = await natsClient(address);
    return await use(client).finally(client.close);
  };
  const create = (stream: string) =>
    connected(({ createStream }) => createStream({ name: stream, max_msg_size: MESSAGE_MAX_BYTES }));
  const subjectOf = (stream: string) => `${stream}.packed`;
  return {
    ...broker,
    create,
    createSource: async (stream) => {
      await create(stream);
      await create(deadOf(stream));
      await connected(({ manager }) =>
        manager.consumers.add(stream, {
          durable_name: CONSUMER,
          ack_policy: AckPolicy.Explicit,
          ack_wait: ACK_WAIT_MS * 1e6,
          max_ack_pending: 10,
        }),
      );
    },
    placeOf: (stream) => ({ kind: 'jet-stream', subject: subjectOf(stream), ...address }),
    deniedPlaceOf: (stream) => ({
      kind: 'jet-stream',
      subject: subjectOf(stream),
      ...address,
      pass: 'wrong',
    }),
    publish: (stream, body) => connected(({ publish }) => publish(subjectOf(stream), body)),
    arrived: (stream) => connected(({ arrived }) => arrived(stream)),
    waiting: (stream) =>
      connected(async ({ manager }) => {
        const { num_pending, num_ack_pending } = await manager.consumers.info(stream, CONSUMER);
        return num_pending + num_ack_pending;
      }),
  };
}
