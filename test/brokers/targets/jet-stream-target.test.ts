import { DiscardPolicy } from '@nats-io/jetstream';
import { expect, inject, test } from 'vitest';
import { type NatsClient, natsClient } from '../clients/nats-client.ts';
import { report } from '../receipts.ts';
import { startNats } from '../servers/nats-broker.ts';
import { bridgeTo, countedAt } from './bridge.ts';
import { targetOf } from './target-of.ts';
import { describeTarget, type TargetBroker } from './target-tests.ts';

const debian = inject('debian');

/** Of the streams, so that an event can be too large which SQS accepts. */
const MESSAGE_MAX_BYTES = 20_000;

async function start(): Promise<TargetBroker> {
  const broker = await startNats(debian?.natsServer ?? '', 'nats-target');
  const connected = async <T>(use: (client: NatsClient) => Promise<T>) => {
    const client = await natsClient(broker.address);
    return await use(client).finally(client.close);
  };
  return {
    ...broker,
    create: (name) =>
      connected(({ createStream }) => createStream({ name, max_msg_size: MESSAGE_MAX_BYTES })),
    placeOf: (name) => ({ kind: 'jet-stream', subject: `${name}.packed`, ...broker.address }),
    deniedPlaceOf: (name) => ({
      kind: 'jet-stream',
      subject: `${name}.packed`,
      ...broker.address,
      pass: 'wrong',
    }),
    arrived: (name) => connected(({ arrived }) => arrived(name)),
  };
}

describeTarget(
  {
    broker: 'JetStream',
    isMissing: debian === undefined,
    start,
    timesAfterCrash: 1,
    tooLarge: 'x'.repeat(MESSAGE_MAX_BYTES),
    errors: {
      missing: /FORWARD_FAILED.*no stream/,
      denied: /FORWARD_FAILED.*authorization/i,
      tooLarge: /FORWARD_REJECTED.*(size|payload)/i,
    },
  },
  (broker) => {
    test('waits until a stream that is full has room', async (context) => {
      const { placeOf } = broker();
      const place = placeOf('full');
      if (place.kind !== 'jet-stream') throw new Error('It is not a JetStream.');
      const client = await natsClient(place);
      try {
        await client.createStream({ name: 'full', max_msgs: 4, discard: DiscardPolicy.New });
        const bridge = bridgeTo(targetOf(place));
        const sent = await bridge.publish(10);
        const failures = await bridge.deliver();
        expect(failures).toHaveLength(6);
        for (const failure of failures) expect(failure).toMatch(/FORWARD_FAILED.*maximum messages exceeded/);
        await client.manager.streams.update('full', { max_msgs: 100 });
        await bridge.settle();
        const arrived = (await client.arrived('full')).map(countedAt);
        const receipt = await report(
          context,
          { broker: 'JetStream', scenario: 'stream full' },
          sent,
          arrived,
        );
        expect(receipt).toMatchObject({ received: 10, lost: 0 });
      } finally {
        await client.close();
      }
    });
  },
);
