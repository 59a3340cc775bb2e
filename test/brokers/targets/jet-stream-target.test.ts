import { DiscardPolicy } from '@nats-io/jetstream';
import { expect, inject, test } from 'vitest';
import { natsClient } from '../clients/nats-client.ts';
import { startJetStreamPlaces } from '../places/jet-stream-places.ts';
import { report } from '../receipts.ts';
import { bridgeTo, countedAt } from './bridge.ts';
import { targetOf } from './target-of.ts';
import { describeTarget } from './target-tests.ts';

const debian = inject('debian');

describeTarget(
  {
    broker: 'JetStream',
    isMissing: debian === undefined,
    start: () => startJetStreamPlaces(debian?.natsServer ?? '', 'nats-target'),
    timesAfterCrash: 1,
    errors: {
      missing: /FORWARD_FAILED.*no stream/,
      denied: /FORWARD_FAILED.*authorization/i,
      tooLarge: /FORWARD_REJECTED.*(size|payload)/i,
    },
  },
  (broker) => {
    test('waits until a stream that is full has room', async (context) => {
      const { placeOf, address } = broker();
      const client = await natsClient(address);
      try {
        await client.createStream({ name: 'full', max_msgs: 4, discard: DiscardPolicy.New });
        const bridge = bridgeTo(targetOf(placeOf('full')));
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
